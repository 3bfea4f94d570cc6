// SPDX-License-Identifier: GPL-2.0-only
/*
 * watch.c: `ttmon smi --watch`. On a terminal it redraws the picture in place on the alternate screen,
 * so the old screen contents come back at the end. Keys: q ends; arrows, page keys, j, k, g, G scroll.
 * Without a terminal it prints one block after the other with an empty line between. The terminal is
 * restored on q, SIGINT, SIGTERM, SIGHUP, and while the program is stopped.
 */
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "tools/cli/cmds.h"
#include "tools/smi/smi.h"
#include "lib/os/clock.h"

/* Enters and leaves the alternate screen without cursor and line wrap. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

static volatile sig_atomic_t got_signal, resized, stopped;

struct screen {
	bool on_terminal, keys;
	struct termios saved;
	size_t rows, columns;
	size_t top, lines; /* first line shown; number of lines of the picture */
};

static void on_signal(int nr)
{
	if (nr == SIGWINCH)
		resized = 1;
	else if (nr == SIGTSTP)
		stopped = 1;
	else
		got_signal = nr;
}

/*
 * The signals are blocked except during ppoll(), so none is lost between the check of a flag and the
 * wait.
 */
static void catch_signals(sigset_t *during_wait)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP };
	struct sigaction act = { .sa_handler = on_signal };
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		sigaddset(&blocked, signals[i]);
		sigaction(signals[i], &act, NULL);
	}
	sigprocmask(SIG_BLOCK, &blocked, during_wait);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigdelset(during_wait, signals[i]);
}

static void enter(struct screen *s)
{
	struct termios raw;

	if (!s->on_terminal)
		return;
	fputs(ENTER, stdout);
	fflush(stdout);
	s->keys = isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &s->saved);
	if (!s->keys)
		return;
	raw = s->saved;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	/* In the background, setting the terminal would stop the process (SIGTTOU), so it is left as it is. */
	if (tcgetpgrp(STDIN_FILENO) != getpgrp() || tcsetattr(STDIN_FILENO, TCSANOW, &raw))
		s->keys = false;
}

static void leave(struct screen *s)
{
	if (!s->on_terminal)
		return;
	if (s->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &s->saved);
	fputs(LEAVE, stdout);
	fflush(stdout);
}

static void measure_screen(struct screen *s, struct ttmon_term_style *style)
{
	struct winsize size = { 0 };

	if (!s->on_terminal)
		return;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
		size = (struct winsize){ .ws_col = 80, .ws_row = 24 };
	s->rows = size.ws_row;
	s->columns = style->columns = size.ws_col;
}

static void scroll_to(struct screen *s, long long top)
{
	size_t page = s->rows > 1 ? s->rows - 1 : 1;
	size_t last = s->lines > page ? s->lines - page : 0;

	s->top = top < 0 ? 0 : MIN((size_t)top, last);
}

/*
 * Draws the part of the picture that fits. Each line overwrites the old one and only the rest is
 * cleared, so nothing flickers.
 */
static void draw(struct screen *s, const char *picture, const char *keys)
{
	size_t shown = 0, nr = 0, page = s->rows > 1 ? s->rows - 1 : 1;
	char foot[160];

	s->lines = 0;
	for (const char *p = picture; *p; p++)
		s->lines += *p == '\n';
	scroll_to(s, (long long)s->top);
	fputs("\033[H", stdout);
	for (const char *p = picture; *p && shown < page; nr++) {
		size_t len = strcspn(p, "\n");

		if (nr >= s->top) {
			/*
			 * After a line of full width the cursor is still in the last column, and clearing would erase
			 * that column.
			 */
			if (ttmon_term_put_line(stdout, p, len, s->columns) < s->columns)
				fputs("\033[K", stdout);
			fputs("\r\n", stdout);
			shown++;
		}
		p += len + (p[len] == '\n');
	}
	if (s->lines > page)
		snprintf(foot, sizeof(foot), "lines %zu-%zu of %zu  %s%s", s->top + 1, s->top + shown, s->lines, keys,
			 s->keys ? "  up/down page g G: move" : "");
	else
		snprintf(foot, sizeof(foot), "%s", keys);
	ttmon_term_put_line(stdout, foot, strlen(foot), s->columns - 1);
	fputs("\033[K\033[J", stdout);
	fflush(stdout);
}

/* Handles the keys. Returns whether to end. */
static bool obey(struct screen *s, const char *keys, ssize_t n)
{
	size_t page = s->rows > 2 ? s->rows - 2 : 1;
	long long top = (long long)s->top;

	for (ssize_t i = 0; i < n; i++) {
		const char *k = keys + i;
		ssize_t left = n - i;

		if (*k == 'q' || *k == 'Q' || *k == 4)
			return true;
		if (left >= 3 && k[0] == '\033' && (k[1] == '[' || k[1] == 'O')) {
			top += k[2] == 'A'   ? -1
			       : k[2] == 'B' ? 1
			       : k[2] == '5' ? -(long long)page
			       : k[2] == '6' ? (long long)page
					     : 0;
			top = k[2] == 'H' ? 0 : k[2] == 'F' ? INT32_MAX : top;
			i += left >= 4 && k[3] == '~' ? 3 : 2;
		} else if (*k == 'k' || *k == 'j') {
			top += *k == 'j' ? 1 : -1;
		} else if (*k == ' ') {
			top += (long long)page;
		} else if (*k == 'g' || *k == 'G') {
			top = *k == 'g' ? 0 : INT32_MAX;
		}
	}
	scroll_to(s, top);
	return false;
}

/* Reads the state and makes the picture; *failed: for the exit status. */
static int picture(const struct ttmon_smi_ask *ask, const struct ttmon_term_style *style, bool json, char **ret,
		   bool *failed)
{
	_cleanup_(ttmon_smi_fini) struct ttmon_smi v = { 0 };
	int err = ttmon_smi_read(ask, &v);
	size_t len;
	FILE *f;

	if (!err)
		err = ttmon_smi_read_busy(ask, &v);
	if (err)
		return err;
	*failed = v.failed;
	if (json) {
		fflush(stdout);
		return ttmon_smi_json(&v, false, STDOUT_FILENO);
	}
	f = open_memstream(ret, &len);
	if (!f)
		return -ENOMEM;
	ttmon_smi_text(&v, style, f);
	if (fclose(f)) {
		free(TAKE_PTR(*ret));
		return -ENOMEM;
	}
	return 0;
}

/*
 * Waits until a time, a signal, or a key that ends the program (returns true). Scrolling and resizing
 * draw the same picture again.
 */
static bool wait_until(struct screen *s, struct ttmon_term_style *style, uint64_t until_ns, const sigset_t *mask,
		       const char *text, const char *keys)
{
	while (!got_signal && !stopped && !resized) {
		struct pollfd in = { .fd = s->keys ? STDIN_FILENO : -1, .events = POLLIN };
		uint64_t now = ttmon_mono_ns();
		struct timespec left;
		char buf[64];
		ssize_t n;

		if (!ttmon_before(now, until_ns))
			return false;
		left = (struct timespec){ .tv_sec = (time_t)((until_ns - now) / NSEC_PER_SEC),
					  .tv_nsec = (long)((until_ns - now) % NSEC_PER_SEC) };
		if (ppoll(&in, 1, &left, mask) <= 0 || !in.revents)
			continue;
		n = read(STDIN_FILENO, buf, sizeof(buf));
		if (n <= 0) {
			s->keys = s->keys && n < 0 && (errno == EINTR || errno == EAGAIN);
			continue;
		}
		if (obey(s, buf, n))
			return true;
		measure_screen(s, style);
		draw(s, text, keys);
	}
	return false;
}

/* Ctrl-Z: restores the terminal for the shell until the program continues. */
static void stop_here(struct screen *s)
{
	leave(s);
	raise(SIGSTOP);
	stopped = 0;
	enter(s);
}

int ttmon_smi_watch(const struct ttmon_smi_ask *asked, struct ttmon_term_style *style, unsigned int refresh_ms,
		    bool json)
{
	struct screen s = { .on_terminal = isatty(STDOUT_FILENO) && !json };
	struct ttmon_smi_memory memory = { 0 };
	struct ttmon_smi_reading *reading = NULL;
	struct ttmon_smi_ask ask = *asked;
	bool end = false, failed = false, first = true;
	char keys[64];
	sigset_t mask;
	int err = 0;

	snprintf(keys, sizeof(keys), "every %u.%u s%s", refresh_ms / 1000, refresh_ms % 1000 / 100,
		 isatty(STDIN_FILENO) ? "  q: quit" : "");
	ask.memory = &memory;
	ask.reading = &reading;
	catch_signals(&mask);
	enter(&s);
	while (!end && !got_signal && !err) {
		uint64_t until = ttmon_mono_ns() + refresh_ms * NSEC_PER_MS;
		_cleanup_free_ char *text = NULL;

		resized = 0;
		measure_screen(&s, style);
		err = picture(&ask, style, json, &text, &failed);
		if (err)
			break;
		if (s.on_terminal) {
			draw(&s, text, keys);
		} else if (!json) {
			printf("%s%s", first ? "" : "\n", text);
			if (fflush(stdout))
				break; /* main() reports the write error */
		}
		first = false;
		end = wait_until(&s, style, until, &mask, text, keys);
		if (stopped)
			stop_here(&s);
	}
	leave(&s);
	free(memory.chips);
	ttmon_smi_reading_free(reading);
	if (err) {
		fprintf(stderr, "ttmon smi: %s\n", strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	return failed ? TTMON_EXIT_NO : 0;
}
