// SPDX-License-Identifier: GPL-2.0-only
/*
 * clocksync.c: see clocksync.h. Hot thread.
 *
 * A pair is taken into the ring if it can follow the last one: cycles went on, at a plausible
 * frequency, give or take a spike of the host (SPIKE_NS). One that cannot is kept aside;
 * TTMON_SYNC_RESET such pairs in a row that can follow each other mean that the counter was reset. A
 * single one is an outlier (for instance the low and high half of the counter were read at different
 * times).
 *
 * The fit: median of the slopes between pairs half a window apart, median of the offsets, then twice:
 * leave out pairs further from the line than twice their own uncertainty (or four times the spread,
 * where the pairs are worse than they claim), then least squares over the rest. Where the newest STEP
 * pairs are all left out, the frequency has changed, and only they are kept; where no line goes
 * through the window (the frequency drifts), the older half is dropped.
 *
 * All differences are taken as 64-bit integers first (cycle counts may pass 2^64) and only those
 * become doubles: with 2^63 cycles on the counter a nanosecond is still resolved.
 */
#include "daemon/core/dispatch/clocksync.h"

#define SPIKE_NS  2000000.0 /* how late a host that was interrupted may be */
#define STEP	  8	    /* 5 % outliers make 8 in a row once in 2.5e10 pairs */
#define TAIL	  3	    /* as many make the fit doubtful for later times */
#define MIN_HALVE 64
#define VAGUE	  8.0 /* times the median uncertainty: such a pair says nothing */
#define OLD_NS	  NSEC_PER_SEC
/*
 * One pair in 20 may be an outlier too small to be detected: it moves the line by at most an eighth of
 * E.
 */
#define SLACK		1.125
#define ROUND_NS	2.0 /* host time and cycles are whole numbers */
#define MAX_SLOPE_ERROR 0.1
#define MAX_SPAN_NS	9.0e18

/* Pairs of the window relative to the newest: cycles in x, ns in y. */
struct window {
	double x[TTMON_SYNC_PAIRS], y[TTMON_SYNC_PAIRS], e[TTMON_SYNC_PAIRS];
	double scratch[TTMON_SYNC_PAIRS];
	bool out[TTMON_SYNC_PAIRS];
	uint32_t n, used;
	/* y = slope * (x - mean_x) + mean_y */
	double slope, mean_x, mean_y;
	double spread; /* standard deviation, estimated from the median residual */
};

static double absd(double x)
{
	return x < 0 ? -x : x;
}

static const struct ttmon_sync_pair *pair_at(const struct ttmon_clocksync *c, uint32_t i)
{
	return &c->pairs[(c->head + i) % TTMON_SYNC_PAIRS];
}

void ttmon_clocksync_init(struct ttmon_clocksync *c)
{
	memset(c, 0, sizeof(*c));
	c->ghz_lo = 0.2;
	c->ghz_hi = 2.0;
}

static uint32_t count_out(const struct ttmon_clocksync *c)
{
	uint32_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(c->out); i++)
		n += (uint32_t)__builtin_popcount(c->out[i]);
	return n;
}

uint64_t ttmon_clocksync_outliers(const struct ttmon_clocksync *c)
{
	return c->outliers + count_out(c);
}

void ttmon_clocksync_drop(struct ttmon_clocksync *c)
{
	c->outliers += count_out(c) + c->nr_odd;
	memset(c->out, 0, sizeof(c->out));
	c->head = c->n = c->fresh = c->nr_odd = 0;
	c->valid = false;
}

double ttmon_clocksync_ghz(const struct ttmon_clocksync *c)
{
	return c->valid ? 1.0 / c->ns_per_cycle : 0;
}

/*
 * k-th smallest of finite numbers; changes their order. Expected linear time; the pivot of sorted
 * numbers is their middle.
 */
static double kth(double *v, uint32_t n, uint32_t k)
{
	int64_t lo = 0, hi = (int64_t)n - 1;

	while (lo < hi) {
		double pivot = v[(lo + hi) / 2];
		int64_t i = lo, j = hi;

		do {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i <= j) {
				double tmp = v[i];

				v[i++] = v[j];
				v[j--] = tmp;
			}
		} while (i <= j);
		if ((int64_t)k <= j)
			hi = j;
		else if ((int64_t)k >= i)
			lo = i;
		else
			break;
	}
	return v[k];
}

/* Loads the newest m pairs of the ring. */
static void load(const struct ttmon_clocksync *c, struct window *w, uint32_t m)
{
	const struct ttmon_sync_pair *last = pair_at(c, c->n - 1);

	w->n = m;
	for (uint32_t i = 0; i < m; i++) {
		const struct ttmon_sync_pair *p = pair_at(c, c->n - m + i);

		w->x[i] = (double)(int64_t)(p->cycles - last->cycles);
		w->y[i] = (double)(int64_t)(p->host_ns - last->host_ns);
		w->e[i] = p->error_ns;
	}
}

static double residual(const struct window *w, uint32_t i)
{
	return w->y[i] - w->mean_y - w->slope * (w->x[i] - w->mean_x);
}

static bool plausible(const struct ttmon_clocksync *c, double slope)
{
	return slope * c->ghz_hi >= 1.0 && slope * c->ghz_lo <= 1.0;
}

static double median_error(struct window *w)
{
	memcpy(w->scratch, w->e, w->n * sizeof(w->e[0]));
	return kth(w->scratch, w->n, w->n / 2);
}

/* A first line that a quarter of the pairs cannot move, and how far the others lie from it. */
static bool robust(const struct ttmon_clocksync *c, struct window *w)
{
	uint32_t half = w->n / 2, k = 0;

	for (uint32_t i = 0; i + half < w->n; i++)
		if (w->x[i + half] > w->x[i])
			w->scratch[k++] = (w->y[i + half] - w->y[i]) / (w->x[i + half] - w->x[i]);
	if (!k)
		return false;
	w->slope = kth(w->scratch, k, k / 2);
	if (!plausible(c, w->slope))
		return false;
	w->mean_x = 0;
	for (uint32_t i = 0; i < w->n; i++)
		w->scratch[i] = w->y[i] - w->slope * w->x[i];
	w->mean_y = kth(w->scratch, w->n, w->n / 2);
	for (uint32_t i = 0; i < w->n; i++)
		w->scratch[i] = absd(residual(w, i));
	w->spread = 1.4826 * kth(w->scratch, w->n, w->n / 2);
	return true;
}

static void leave_out(struct window *w, double e_med)
{
	double floor = w->spread > e_med ? 4 * w->spread : 0;

	w->used = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		w->out[i] = w->e[i] > VAGUE * e_med || absd(residual(w, i)) > MAX(2 * w->e[i], floor);
		w->used += !w->out[i];
	}
}

static bool least_squares(const struct ttmon_clocksync *c, struct window *w)
{
	double sx = 0, sy = 0, sxx = 0, sxy = 0;

	if (w->used < 2)
		return false;
	for (uint32_t i = 0; i < w->n; i++) {
		sx += w->out[i] ? 0 : w->x[i];
		sy += w->out[i] ? 0 : w->y[i];
	}
	w->mean_x = sx / w->used;
	w->mean_y = sy / w->used;
	for (uint32_t i = 0; i < w->n; i++) {
		if (w->out[i])
			continue;
		sxx += (w->x[i] - w->mean_x) * (w->x[i] - w->mean_x);
		sxy += (w->x[i] - w->mean_x) * (w->y[i] - w->mean_y);
	}
	if (sxx <= 0)
		return false;
	w->slope = sxy / sxx;
	return plausible(c, w->slope);
}

static bool fit_window(const struct ttmon_clocksync *c, struct window *w, uint32_t m)
{
	double e_med;

	load(c, w, m);
	e_med = median_error(w);
	if (!robust(c, w))
		return false;
	for (int pass = 0; pass < 2; pass++) {
		leave_out(w, e_med);
		if (!least_squares(c, w))
			return false;
	}
	return true;
}

/* Drops all but the newest m pairs. */
static void forget(struct ttmon_clocksync *c, uint32_t m)
{
	while (c->n > m) {
		uint32_t bit = c->head;

		c->outliers += c->out[bit / 32] >> bit % 32 & 1;
		c->out[bit / 32] &= ~(1u << bit % 32);
		c->head = (c->head + 1) % TTMON_SYNC_PAIRS;
		c->n--;
	}
}

static uint32_t trailing(const struct window *w)
{
	uint32_t k = 0;

	while (k < w->n && w->out[w->n - 1 - k])
		k++;
	return k;
}

/* Takes w's line as the fit. */
static void take(struct ttmon_clocksync *c, const struct window *w)
{
	const struct ttmon_sync_pair *last = pair_at(c, c->n - 1);
	double worst = 0, sum_e = 0, sum_ex = 0, sxx = 0;
	uint32_t tail = trailing(w), first_used = w->n;
	int64_t cx = (int64_t)w->mean_x;
	bool honest = true;

	memset(c->out, 0, sizeof(c->out));
	c->tail_ns = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		double r = absd(residual(w, i));
		uint32_t bit = (c->head + c->n - w->n + i) % TTMON_SYNC_PAIRS;

		if (w->out[i]) {
			c->out[bit / 32] |= 1u << bit % 32;
			if (tail >= TAIL && i >= w->n - tail)
				c->tail_ns = MAX(c->tail_ns, r);
			continue;
		}
		first_used = MIN(first_used, i);
		worst = MAX(worst, r);
		honest = honest && r <= 2 * w->e[i];
	}
	for (uint32_t i = 0; i < w->n; i++) {
		double e = MAX(w->e[i], honest ? absd(residual(w, i)) : worst) + ROUND_NS;
		double dx = w->x[i] - w->mean_x;

		if (w->out[i])
			continue;
		sum_e += e;
		sum_ex += e * absd(dx);
		sxx += dx * dx;
	}
	c->ns_per_cycle = w->slope;
	c->cycles0 = last->cycles + (uint64_t)cx;
	c->host0_ns = last->host_ns + (uint64_t)(int64_t)w->mean_y;
	c->offset_ns = w->mean_y - (double)(int64_t)w->mean_y + w->slope * ((double)cx - w->mean_x);
	c->residual_ns = worst;
	c->error_ns = SLACK * sum_e / w->used + ROUND_NS;
	c->slope_error = SLACK * sum_ex / sxx / w->slope;
	c->from_ns = pair_at(c, c->n - w->n + first_used)->host_ns;
	c->to_ns = pair_at(c, c->n - 1 - tail)->host_ns;
	c->tail_cycles = pair_at(c, c->n - 1 - tail)->cycles;
	c->valid = c->slope_error < MAX_SLOPE_ERROR;
}

/*
 * Where no line goes through the whole window, tries a shorter one and takes it if the gain is more
 * than chance (the residuals of a drifting frequency fall with the square of the window, those of bad
 * pairs do not).
 */
static bool fit_newest(const struct ttmon_clocksync *c, struct window *w)
{
	double full = w->spread;

	for (uint32_t m = c->n / 2; m >= MIN_HALVE / 2; m /= 2)
		if (fit_window(c, w, m) && w->spread <= 3 * median_error(w) && 8 * w->spread < full)
			return true;
	return fit_window(c, w, c->n);
}

static void fit(struct ttmon_clocksync *c)
{
	struct window w;
	bool fits;

	c->fresh = 0;
	c->valid = false;
	if (c->n < 2)
		return;
	fits = fit_window(c, &w, c->n);
	if (fits && trailing(&w) >= STEP) {
		c->resets++;
		forget(c, trailing(&w));
		fits = fit_window(c, &w, c->n);
	}
	if (fits && c->n >= MIN_HALVE && w.spread > 3 * median_error(&w))
		fits = fit_newest(c, &w);
	if (!fits)
		return;
	forget(c, w.n);
	take(c, &w);
}

/* True if b may follow a. */
static bool follows(const struct ttmon_clocksync *c, const struct ttmon_sync_pair *a, const struct ttmon_sync_pair *b)
{
	double dh = (double)(int64_t)(b->host_ns - a->host_ns), dc = (double)(int64_t)(b->cycles - a->cycles);
	double slack = SPIKE_NS + a->error_ns + b->error_ns;

	return dc > 0 && dc >= c->ghz_lo * (dh - slack) && dc <= c->ghz_hi * (dh + slack);
}

static void push(struct ttmon_clocksync *c, const struct ttmon_sync_pair *p)
{
	forget(c, TTMON_SYNC_PAIRS - 1);
	c->pairs[(c->head + c->n++) % TTMON_SYNC_PAIRS] = *p;
	c->fresh++;
}

/*
 * Takes a pair that does not follow the last one. True: it and the odd ones before it are the new
 * ring.
 */
static bool take_odd(struct ttmon_clocksync *c, const struct ttmon_sync_pair *p)
{
	struct ttmon_sync_pair odd[TTMON_SYNC_RESET];

	if (c->nr_odd && !follows(c, &c->odd[c->nr_odd - 1], p)) {
		c->outliers += c->nr_odd;
		c->nr_odd = 0;
	}
	c->odd[c->nr_odd++] = *p;
	if (c->nr_odd < TTMON_SYNC_RESET)
		return false;
	memcpy(odd, c->odd, sizeof(odd));
	c->nr_odd = 0;
	ttmon_clocksync_drop(c);
	c->resets++;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		push(c, &odd[i]);
	return true;
}

/* The pair contradicts the fit: the next fit does not wait for more pairs. */
static bool surprising(const struct ttmon_clocksync *c, const struct ttmon_sync_pair *p)
{
	uint64_t host_ns, error_ns;

	return !ttmon_clocksync_map(c, p->cycles, &host_ns, &error_ns) ||
	       absd((double)(int64_t)(p->host_ns - host_ns)) > (double)error_ns + p->error_ns;
}

bool ttmon_clocksync_add(struct ttmon_clocksync *c, const struct ttmon_sync_pair *pair)
{
	struct ttmon_sync_pair p = *pair;

	if (!p.error_ns)
		p.error_ns = TTMON_SYNC_ERROR_NS;
	c->total++;
	if (c->n) {
		const struct ttmon_sync_pair *last = pair_at(c, c->n - 1);

		if (!follows(c, last, &p)) {
			/*
			 * Reported before, or overtaken: nothing to learn. One from far before shows that the last pair
			 * was invalid.
			 */
			if (p.cycles == last->cycles || (last->host_ns - p.host_ns < OLD_NS && follows(c, &p, last)))
				return false;
			if (!take_odd(c, &p))
				return false;
			fit(c);
			return true;
		}
	}
	c->outliers += c->nr_odd;
	c->nr_odd = 0;
	push(c, &p);
	if (!c->valid || c->fresh > c->n / 32 || (c->fresh > c->n / 128 && surprising(c, &p)))
		fit(c);
	return true;
}

bool ttmon_clocksync_map(const struct ttmon_clocksync *c, uint64_t cycles, uint64_t *host_ns, uint64_t *error_ns)
{
	double d = (double)(int64_t)(cycles - c->cycles0), at, bound;

	if (!c->valid)
		return false;
	at = c->ns_per_cycle * d + c->offset_ns;
	bound = c->error_ns + absd(at) * (c->slope_error + 0x1p-50);
	if ((int64_t)(cycles - c->tail_cycles) > 0)
		bound += c->tail_ns;
	if (absd(at) > MAX_SPAN_NS || bound > MAX_SPAN_NS)
		return false;
	*host_ns = c->host0_ns + (uint64_t)(int64_t)(at + (at < 0 ? -0.5 : 0.5));
	*error_ns = (uint64_t)bound + 1;
	return true;
}
