// SPDX-License-Identifier: GPL-2.0-only
/*
 * clidoc.c: generates help, the option list of manual pages, and shell completion from the rows of
 * lib/os/cli.h.
 */
#include <ctype.h>
#include <dirent.h>

#include "lib/os/cli.h"

#define MAX_LEFT 26 /* if the option is longer, its help is on the next line */

static bool maybe(const struct ttmon_cli_opt *o)
{
	return o->arg && *o->arg == '=';
}

/* ---- help ---- */

/* Formats "-o, --output FILE". */
static int left_of(const struct ttmon_cli_opt *o, char *buf, size_t n)
{
	const char letter[] = { '-', o->letter, ',', '\0' };

	return snprintf(buf, n, "%-3s --%s%s%s%s", o->letter ? letter : "", o->name,
			!o->arg	    ? ""
			: !maybe(o) ? " "
			: o->arg[1] ? "["
				    : "",
			o->arg && strcmp(o->arg, "=") ? o->arg : "", maybe(o) && o->arg[1] ? "]" : "");
}

/* Prints text with newlines, each line from column at on. */
static void put_lines(FILE *f, const char *text, int at)
{
	for (const char *nl; (nl = strchr(text, '\n')); text = nl + 1)
		fprintf(f, "%.*s\n%*s", (int)(nl - text), text, at, "");
	fprintf(f, "%s\n", text);
}

static void put_options(const struct ttmon_cli_cmd *cmd, bool all, FILE *f)
{
	const struct ttmon_cli_opt *o;
	int width = 0;
	char left[80];

	for (size_t i = 0; (o = ttmon_cli_row(cmd, &i));)
		if (left_of(o, left, sizeof(left)) <= MAX_LEFT)
			width = MAX(width, (int)strlen(left));
	for (size_t i = 0; (o = ttmon_cli_row(cmd, &i));) {
		if (o->rare && !all)
			continue;
		if (left_of(o, left, sizeof(left)) > width)
			fprintf(f, "  %s\n%*s", left, width + 4, "");
		else
			fprintf(f, "  %-*s  ", width, left);
		put_lines(f, o->help, width + 4);
	}
}

static void put_help(const struct ttmon_cli_cmd *cmd, bool all, FILE *f)
{
	for (const char *args = cmd->args, *nl; args; args = nl ? nl + 1 : NULL) {
		nl = strchr(args, '\n');
		fprintf(f, "%s %s %.*s\n", args == cmd->args ? "usage:" : "      ", cmd->name,
			nl ? (int)(nl - args) : (int)strlen(args), args);
	}
	if (cmd->about)
		fprintf(f, "%s\n", cmd->about);
	if (cmd->subs) {
		fputs("\ncommands:\n", f);
		for (size_t i = 0; cmd->subs[i]; i++)
			fprintf(f, "  %-10s %s\n", strrchr(cmd->subs[i]->name, ' ') + 1, cmd->subs[i]->summary);
		fputs("\noptions:", f);
	}
	fputc('\n', f);
	put_options(cmd, all, f);
	if (cmd->notes)
		fprintf(f, "\n%s\n", cmd->notes);
}

/* ---- manual page ---- */

static void put_roff(FILE *f, const char *text)
{
	for (; *text; text++)
		fprintf(f, "%s%c", *text == '-' ? "\\" : "", *text);
}

/* own: leave out the options that all commands with shared rows have. */
static void put_man(const struct ttmon_cli_cmd *cmd, bool own, FILE *f)
{
	const struct ttmon_cli_opt *o;

	for (size_t i = 0; (o = ttmon_cli_row(cmd, &i));) {
		if (own && !o->of)
			continue;
		fputs(".TP\n.B ", f);
		if (o->letter)
			fprintf(f, "\\-%c, ", o->letter);
		fputs("\\-\\-", f);
		put_roff(f, o->name);
		if (o->arg && strcmp(o->arg, "="))
			fprintf(f, maybe(o) ? "[%s]" : " %s", o->arg);
		fprintf(f, "\n%c%s.\n", toupper((unsigned char)o->help[0]), o->help + 1);
		if (o->man)
			fprintf(f, "%s\n", o->man);
	}
}

void ttmon_cli_help(const struct ttmon_cli_cmd *cmd, const char *how, FILE *f)
{
	if (how && (!strcmp(how, "man") || !strcmp(how, "own")))
		put_man(cmd, !strcmp(how, "own"), f);
	else if (how && cmd->more_name && !strcmp(how, cmd->more_name))
		cmd->more(f);
	else
		put_help(cmd, how && !strcmp(how, "all"), f);
}

/* ---- completion ---- */

/* Returns the row of the option that a word is; NULL: none. */
static const struct ttmon_cli_opt *row_of(const struct ttmon_cli_cmd *cmd, const char *word)
{
	const struct ttmon_cli_opt *o;

	for (size_t i = 0; (o = ttmon_cli_row(cmd, &i));) {
		size_t n = strlen(o->name);

		if (word[1] == '-' ? !strncmp(word + 2, o->name, n) && (!word[2 + n] || word[2 + n] == '=')
				   : o->letter && word[1] == o->letter && !word[2])
			return o;
	}
	return NULL;
}

static void candidate(const char *begun, const char *before, const char *word, size_t n, const char *what)
{
	if (n >= strlen(begun) && !memcmp(word, begun, strlen(begun)))
		printf("%s%.*s\t%.*s\n", before, (int)n, word, (int)strcspn(what, "\n"), what);
}

static void pids(const char *begun, const char *before)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (isdigit((unsigned char)*e->d_name))
			candidate(begun, before, e->d_name, strlen(e->d_name), "");
	if (d)
		closedir(d);
}

/* before: the beginning of the word, such as "--option=". */
static void words_of(const char *words, const char *begun, const char *before)
{
	for (size_t n; words && *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (!strncmp(words, ":pid", n))
			pids(begun, before);
		else if (*words == ':')
			printf("%.*s\n", (int)n, words);
		else
			candidate(begun, before, words, n, "");
	}
}

void ttmon_cli_complete(const struct ttmon_cli_cmd *cmd, int n, char **words)
{
	const char *last = n > 0 ? words[n - 1] : "";
	const struct ttmon_cli_opt *value = NULL, *o; /* value: the option whose argument is the next word */
	bool seen = false;			      /* there was a word that is not an option */
	const char *eq;
	char name[64];

	for (int i = 0; i < n - 1; i++) {
		const char *w = words[i];

		/* bash passes --option=word as three words. */
		if (!strcmp(w, "=")) {
			value = i ? row_of(cmd, words[i - 1]) : NULL;
		} else if (value) {
			value = NULL;
		} else if (!strcmp(w, "--") || (*w != '-' && cmd->stops)) {
			if (cmd->stops)
				printf(":command %d\n", *w == '-' ? i + 1 : i);
			else
				words_of(cmd->words, last, "");
			return;
		} else if (*w == '-') {
			o = row_of(cmd, w);
			value = o && o->arg && !maybe(o) && !strchr(w, '=') ? o : NULL;
		} else {
			const struct ttmon_cli_cmd *const *sub = seen ? NULL : cmd->subs;

			for (; sub && *sub && strcmp(w, strrchr((*sub)->name, ' ') + 1) != 0; sub++)
				;
			if (sub && *sub)
				cmd = *sub;
			else
				seen = true;
		}
	}
	if (!strcmp(last, "=")) {
		value = n > 1 ? row_of(cmd, words[n - 2]) : NULL;
		last = "";
	}
	eq = !strncmp(last, "--", 2) ? strchr(last, '=') : NULL;
	if (eq)
		value = row_of(cmd, last);
	if (value) {
		snprintf(name, sizeof(name), "%.*s", eq ? (int)(eq + 1 - last) : 0, last);
		words_of(value->words, eq ? eq + 1 : last, name);
		return;
	}
	if (*last == '-') {
		for (size_t i = 0; (o = ttmon_cli_row(cmd, &i));) {
			snprintf(name, sizeof(name), "--%s", o->name);
			candidate(last, "", name, strlen(name), o->help);
		}
		if (cmd->stops)
			candidate(last, "", "--", 2, "a command follows");
		return;
	}
	for (size_t i = 0; !seen && cmd->subs && cmd->subs[i]; i++) {
		const char *sub = strrchr(cmd->subs[i]->name, ' ') + 1;

		candidate(last, "", sub, strlen(sub), cmd->subs[i]->summary);
	}
	if (cmd->stops && cmd->min_words)
		printf(":command %d\n", n - 1);
	words_of(cmd->words, last, "");
}
