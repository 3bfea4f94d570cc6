// SPDX-License-Identifier: GPL-2.0-only
/* screen.c: see screen.h. */
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>

#include "tools/term/screen.h"

#define KEY_ESC	   27
#define FIRST_PAIR 32 /* of the colours of enum ttmon_term_colour; a screen may use those before */

volatile sig_atomic_t ttmon_screen_ended;
static bool colours;

static void on_signal(int nr)
{
	ttmon_screen_ended = nr;
}

static void begin_colours(void)
{
	static const short of[] = {
		[TTMON_TERM_GREEN] = COLOR_GREEN, [TTMON_TERM_YELLOW] = COLOR_YELLOW, [TTMON_TERM_RED] = COLOR_RED
	};
	const char *no = getenv("NO_COLOR");

	colours = !(no && *no) && has_colors() && start_color() != ERR && COLOR_PAIRS > FIRST_PAIR + TTMON_TERM_RED;
	if (!colours)
		return;
	use_default_colors();
	for (short i = TTMON_TERM_GREEN; i <= TTMON_TERM_RED; i++)
		init_pair((short)(FIRST_PAIR + i), of[i], -1);
}

SCREEN *ttmon_screen_begin(const char *command)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction act = { .sa_handler = on_signal };
	SCREEN *screen;

	setlocale(LC_CTYPE, "");
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &act, NULL);
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		fprintf(stderr, "ttmon %s: this terminal (TERM=%s) has no screen that is known here, see -1\n", command,
			getenv("TERM") ? getenv("TERM") : "");
		return NULL;
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	begin_colours();
	return screen;
}

void ttmon_screen_end(SCREEN *screen)
{
	endwin();
	delscreen(screen);
}

struct ttmon_term_style ttmon_screen_style(void)
{
	return (struct ttmon_term_style){ .columns = (size_t)MAX(COLS, 1),
					  .colour = colours,
					  .utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8") };
}

/* The attributes of an escape sequence of ttmon_term_escape(): its parameter, as a number. */
static attr_t attr_of(unsigned long sgr)
{
	switch (sgr) {
	case 1:
		return A_BOLD;
	case 2:
		return A_DIM;
	case 31:
		return (attr_t)COLOR_PAIR(FIRST_PAIR + TTMON_TERM_RED);
	case 32:
		return (attr_t)COLOR_PAIR(FIRST_PAIR + TTMON_TERM_GREEN);
	case 33:
		return (attr_t)COLOR_PAIR(FIRST_PAIR + TTMON_TERM_YELLOW);
	default:
		return A_NORMAL;
	}
}

void ttmon_screen_put(int y, int from, const char *line, size_t len)
{
	struct ttmon_term_style style = ttmon_screen_style();
	size_t x = (size_t)MAX(from, 0);

	if (y < 0 || y >= LINES)
		return;
	while (len && x < style.columns) {
		const char *esc = memchr(line, '\033', len);
		size_t n = esc ? (size_t)(esc - line) : len;
		char text[2048];

		if (!n && len > 1 && line[1] == '[') {
			char *end;
			unsigned long sgr = strtoul(line + 2, &end, 10);

			attrset(colours ? attr_of(sgr) : A_NORMAL);
			n = MIN((size_t)(end - line) + 1, len);
		} else {
			n = n ? n : 1;
			move(y, (int)x);
			x += ttmon_term_clean(text, sizeof(text), line, n, style.columns - x, style.utf8);
			addstr(text);
		}
		line += n;
		len -= n;
	}
	attrset(A_NORMAL);
}

void ttmon_screen_select(int y)
{
	if (y >= 0 && y < LINES)
		mvchgat(y, 0, -1, A_REVERSE, 0, NULL);
}

void ttmon_screen_move(size_t *at, int key, size_t page, size_t end)
{
	switch (key) {
	case KEY_UP:
		*at -= *at > 0;
		break;
	case KEY_DOWN:
		++*at;
		break;
	case KEY_PPAGE:
		*at -= MIN(*at, page);
		break;
	case KEY_NPAGE:
		*at += page;
		break;
	case KEY_HOME:
		*at = 0;
		break;
	case KEY_END:
		*at = end;
		break;
	default:
		break;
	}
}

/* ---- the filter ---- */

static void remove_last(char *text)
{
	size_t n = strlen(text);

	while (n && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
		n--;
	text[n ? n - 1 : 0] = '\0';
}

bool ttmon_screen_filter_key(struct ttmon_screen_filter *f, int key)
{
	size_t n = strlen(f->text);

	if (key == KEY_ESC && (f->editing || n)) {
		f->text[0] = '\0';
		f->editing = false;
		return true;
	}
	if (!f->editing) {
		f->editing = key == '/';
		return f->editing;
	}
	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		f->editing = false;
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		remove_last(f->text);
	} else if (key >= ' ' && key < 256) {
		/* The bytes of a character that is not ASCII come one by one. */
		if (n + 1 < sizeof(f->text)) {
			f->text[n] = (char)key;
			f->text[n + 1] = '\0';
		}
	} else {
		return false;
	}
	return true;
}

const char *ttmon_screen_filter_text(const struct ttmon_screen_filter *f, char *buf, size_t n)
{
	buf[0] = '\0';
	if (f->editing)
		snprintf(buf, n, "filter: %s_  (Enter keeps it, Esc ends it)", f->text);
	else if (f->text[0])
		snprintf(buf, n, "filter: %s (Esc ends it)  ", f->text);
	return buf;
}
