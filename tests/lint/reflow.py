#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""reflow.py FILE...: wraps the comments of C files whose text is over 100 columns, in place.

Only paragraphs of prose with such a line change: tables, drawings and lists with columns stay as they are,
for a person. A comment behind a line of code that is over 120 columns moves above it. What is not changed
and still too long is what lint.py names.
"""
import re
import sys
import textwrap

from lint import CODE_COLUMNS, TEXT_COLUMNS

BLOCK = re.compile(r"^([ \t]*)/\*(?!\*)((?:(?!\*/).)*)\*/[ \t]*$", re.M | re.S)
BEHIND = re.compile(r"^([ \t]+)(\S.*[;,{])[ \t]*/\* (.*) \*/$")


def is_prose(text):
    """No columns in it, no drawing."""
    return not re.search(r"\S  +\S|\t|[|]|\+--|->.*->|^[-=*]{3}", text)


def wrap(words, indent, width, first="", rest=""):
    return textwrap.wrap(
        words, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def paragraphs(rows):
    """Runs of rows that are one paragraph: (its rows, whether it is prose)."""
    run = []
    for row in [*rows, ""]:
        starts = re.match(r"[ \t]+(?:[-*] |\d+\. |[A-Za-z_]\w*: |@)", row)
        deeper = row.startswith("  ") != bool(run and run[-1].startswith("  "))
        if run and (not row.strip() or starts or (deeper and not re.match(r" [-*] ", run[0]))):
            yield run
            run = []
        if row.strip():
            run.append(row)
        else:
            yield [row]


def reflow_block(m):
    indent, body = m.group(1), m.group(2)
    width = min(TEXT_COLUMNS, CODE_COLUMNS - len(indent.expandtabs(8)) - 3)
    rows = body.split("\n")
    if len(rows) == 1:
        text = body.strip()
        if len(text) + 3 <= width or not is_prose(text):
            return m.group()
        return "\n".join([f"{indent}/*", *(f"{indent} * {w}" for w in wrap(text, indent, width)), f"{indent} */"])
    inner = [re.sub(r"^[ \t]*\*", "", r) for r in rows[1:]]
    head = rows[0].strip()
    if not any(len(r) - 1 > width for r in inner) and len(head) <= width:
        return m.group()
    if inner and not inner[-1].strip():
        inner.pop()
    if head:
        inner.insert(0, " " + head)
    out = []
    for run in paragraphs(inner):
        lead = re.match(r" *(?:[-*] )?", run[0]).group()
        hang = re.match(r" *", run[1]).group() if len(run) > 1 else " " * len(lead)
        same = all(re.match(r" *", r).group() == hang for r in run[1:])
        text = " ".join(r.strip() for r in run)
        if not any(len(r) - 1 > width for r in run) or not same or not all(is_prose(r) for r in run):
            out += run
            continue
        text = text[len(lead.strip()) :].strip() if lead.strip() else text
        out += wrap(text, indent, width + 1, lead, hang)
    while out and not out[-1].strip():
        out.pop()
    return "\n".join([f"{indent}/*", *(f"{indent} *{r}".rstrip() for r in out), f"{indent} */"])


def reflow(text):
    rows, before = [], "{"
    for row in text.split("\n"):
        m = BEHIND.match(row)
        alone = m and "/*" not in m.group(2) and re.search(r"[;{}/]\s*$|^\s*$", before)
        if alone and len(row.expandtabs(8)) > CODE_COLUMNS:
            rows.append(f"{m.group(1)}/* {m.group(3)} */")
            row = m.group(1) + m.group(2).rstrip()
        rows.append(row)
        before = row
    return BLOCK.sub(reflow_block, "\n".join(rows))


TOKEN = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|/\*.*?\*/|//[^\n]*", re.S)


def code(text):
    """What the compiler sees: without comments, any white space as one blank."""
    return re.sub(r"\s+", " ", TOKEN.sub(lambda m: m.group() if m.group()[0] in "\"'" else " ", text))


def main():
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as f:
            old = f.read()
        new = reflow(old)
        if code(new) != code(old):
            print(f"{name}: not changed: more than comments would change", file=sys.stderr)
        elif new != old:
            with open(name, "w", encoding="utf-8") as f:
                f.write(new)


if __name__ == "__main__":
    main()
