// SPDX-License-Identifier: GPL-2.0-only
/*
 * chart.js: the heat map with its life lines, and the pinned pages under it, on one axis of time. Knows columns of numbers; what a row is called and
 * what is said of it comes from view.js.
 *
 * A picture is made of cells two pixels wide and one row, or where there are more rows than lines one line, high. All that is in view is added up
 * anew for each picture: that takes less time than drawing it.
 */

const CELL = 2, AXIS = 22, PINNED = 120, GAP = 10;

/*
 * What a method is must be seen by everybody: a kind of memory has its stripes, and the methods of one kind differ in lightness, which colour-blind
 * people see too. tests/e2e/t_view.py measures both in the picture.
 */
const METHOD_COLOURS = {
	host_alloc: "#003a80", tt_dma: "#7c52ac", pool: "#00a077", registered: "#7cc8f5", mmap: "#a83a00", custom: "#e69f00", piece: "#003a80", managed: "#8f2f6e", device: "#9a9a9a",
	tt_l1: "#1a2d6b", tt_cb: "#006450", tt_trace: "#7b71c1", tt_dram: "#a1a1a1", tt_l1_small: "#f2c66a",
};
const methodColour = (m) => METHOD_COLOURS[m.name] || "#8c8c8c";

// [cells after which the stripes begin again, of these the first so many show the ground]. tt_dma is host memory that the driver pins.
// Unknown: host memory of which it is not known whether it is pinned. kind: of the allocation, as view.js has it; 1: not known, 2: pinned whatever its method.
const STRIPES = {pinned: [1, 0], pageable: [3, 1], unknown: [5, 3], other: [10, 2], tt: [8, 4]};
const stripesOf = (m, kind) => STRIPES[kind === 1 ? "unknown" : kind === 2 || m.pinned || m.name === "tt_dma" ? "pinned" : m.host ? "pageable" : m.part === "tt" ? "tt" : "other"];

class Chart {
	// data: see view.js. hooks: {row(alloc): [label, ...], hover(hit, x, y), pick(alloc), status(text)}
	constructor(box, data, hooks) {
		this.box = box;
		box.chart = this;
		this.data = data;
		this.hooks = hooks;
		this.mode = "heat";
		this.all = false;
		this.rows = new Uint32Array(0);
		this.groups = [];
		this.curve = null;
		this.proc = -1; // its checkpoints alone
		this.selected = -1;
		this.hit = null;
		this.base = box.appendChild(el("canvas"));
		this.over = box.appendChild(el("canvas"));
		this.cells = document.createElement("canvas");
		this.width = data.width;
		listen(this);
		new ResizeObserver(() => this.resize()).observe(box);
		this.resize();
	}

	// rows: numbers of allocations from top to bottom; groups: [first row, label], in order; curve: of pinned pages.
	show(rows, groups, curve) {
		this.rows = rows;
		this.groups = groups;
		this.curve = curve;
		this.fit();
	}

	// All rows, and the time from the first to the last of them.
	fit() {
		const {t0, t1} = this.data;
		let from = Infinity, to = 0;

		for (const a of this.rows) {
			from = Math.min(from, t0[a]);
			to = Math.max(to, t1[a]);
		}
		if (!(from < to)) {
			from = 0;
			to = this.data.span;
		}
		const edge = (to - from) * 0.01;

		this.span = Math.max(this.data.span, to, this.width, 1);
		this.home = [Math.max(0, from - edge), Math.min(this.span, to + edge)];
		this.setView(this.home[0], this.home[1], 0, this.rows.length);
	}

	isHome() {
		return this.t0 <= this.home[0] && this.t1 >= this.home[1] && this.r0 <= 0 && this.r1 >= this.rows.length;
	}

	// The nearest view that there is: within the capture, not closer than the transfers are known, not less than two rows.
	setView(t0, t1, r0, r1) {
		const n = Math.max(this.rows.length, 1);
		const dt = Math.min(Math.max(t1 - t0, Math.min(8 * this.width, this.span)), this.span);
		const dr = Math.min(Math.max(r1 - r0, Math.min(2, n)), n);

		this.t0 = Math.min(Math.max(0, (t0 + t1 - dt) / 2), this.span - dt);
		this.t1 = this.t0 + dt;
		this.r0 = Math.min(Math.max(0, (r0 + r1 - dr) / 2), n - dr);
		this.r1 = this.r0 + dr;
		this.redraw();
	}

	// Factor below 1: closer. At a point, as shares of the width and the height.
	zoom(factorTime, factorRows, x = 0.5, y = 0.5) {
		const t = this.t0 + x * (this.t1 - this.t0), r = this.r0 + y * (this.r1 - this.r0);

		this.setView(t - (t - this.t0) * factorTime, t + (this.t1 - t) * factorTime,
			r - (r - this.r0) * factorRows, r + (this.r1 - r) * factorRows);
	}

	redraw() {
		if (!this.asked)
			this.asked = requestAnimationFrame(() => this.draw());
	}

	resize() {
		const w = this.box.clientWidth, size = [w, innerHeight, window.devicePixelRatio].join();

		if (size === this.size)
			return;
		this.size = size;
		this.dpr = Math.min(window.devicePixelRatio || 1, 2);
		this.left = w < 700 ? 84 : Math.min(260, Math.round(w * 0.2));
		this.w = Math.max(40, w - this.left - 8);
		// A few rows are no reason for bars as high as the window.
		this.h = Math.max(160, Math.min(620, Math.round(innerHeight * 0.55), this.data.n * 40));
		this.box.style.height = AXIS + this.h + GAP + PINNED + 2 + "px";
		for (const c of [this.base, this.over]) {
			c.width = w * this.dpr;
			c.height = (AXIS + this.h + GAP + PINNED) * this.dpr;
			c.style.width = w + "px";
			c.style.height = AXIS + this.h + GAP + PINNED + "px";
		}
		this.theme();
		// A canvas of a new size is empty, and must not be seen so.
		this.draw();
	}

	theme() {
		const dark = isDark();

		this.ramp = ramp(dark);
		this.ramp32 = Uint32Array.from(this.ramp, pixel);
		this.colours = Object.fromEntries(["plot", "life", "grid", "ink", "soft", "line", "area", "area-line", "hatch", "mark", "accent"].map((n) => [n, colour(n)]));
		this.method32 = Uint32Array.from(this.data.methods, (m) => pixel(rgb(methodColour(m))));
		// On a life line the more transfers the more of the colour of the ink; a single one is to be seen on the lightest and the darkest line.
		const ink = rgb(this.colours.mark);

		this.marks = Uint32Array.from(this.data.methods.flatMap((m) => {
			const bar = rgb(methodColour(m));

			return [0.7, 0.8, 0.9, 1].map((share) => pixel(bar.map((c, i) => Math.round(c + share * (ink[i] - c)))));
		}));
		this.redraw();
	}

	x(t) {
		return this.left + (t - this.t0) / (this.t1 - this.t0) * this.w;
	}

	y(row) {
		return AXIS + (row - this.r0) / (this.r1 - this.r0) * this.h;
	}

	// ---- cells ----

	/*
	 * this.heat: copies in each cell; live: allocations alive in it; first: of each line the first of its rows, lossy: some of its transfers
	 * have no time. Lines are rows, or as many as there are pixels.
	 */
	fill() {
		const {t0, t1, at, copies, from, middle, to, dropped, at_least} = this.data, width = this.width;
		const w = this.nx = Math.ceil(this.w / CELL), top = Math.floor(this.r0), end = Math.min(Math.ceil(this.r1), this.rows.length);
		const n = Math.max(end - top, 0), many = n > this.h, lines = this.ny = Math.max(1, many ? this.h : n);
		const perNs = w / (this.t1 - this.t0), perRow = many ? lines / n : 1;
		const size = w * lines;

		if (!this.heat || this.heat.length < size) {
			this.heat = new Uint32Array(size);
			this.live = new Int32Array(size + lines);
		}
		const heat = this.heat, live = this.live;

		heat.fill(0, 0, size);
		live.fill(0, 0, size + lines);
		this.first = new Uint32Array(lines);
		this.lossy = new Uint8Array(lines);
		// From bins to cells: times bin, less off. The last cell has the end of the view in it.
		const bin = width * perNs, off = this.t0 * perNs, begins = Math.floor(this.t0 / width), ends = Math.ceil((w + off) / bin) - 1;
		let last = -1;

		for (let i = 0; i < n; i++) {
			const a = this.rows[top + i], line = Math.min(lines - 1, Math.floor(i * perRow)), row = line * w;

			if (line !== last)
				this.first[line] = a;
			last = line;
			if (t1[a] < this.t0 || t0[a] > this.t1)
				continue;
			if (dropped[a] || at_least[a])
				this.lossy[line] = 1;
			const begin = Math.max(0, Math.floor((t0[a] - this.t0) * perNs)), stop = Math.min(w - 1, Math.floor((t1[a] - this.t0) * perNs));

			live[row + line + begin]++;
			live[row + line + stop + 1]--;
			for (let part = 0; part < (this.all ? 2 : 1); part++) {
				const hi = part ? to[a] : middle[a], first = part ? middle[a] : from[a];
				const lo = at[first] >= begins ? first : lowerBound(at, first, hi, begins);

				if (bin <= 1) {
					for (let k = lo; k < hi && at[k] <= ends; k++)
						heat[row + Math.min(w - 1, Math.max(0, at[k] * bin - off | 0))] += copies[k];
					continue;
				}
				// A piece of time wider than a cell.
				for (let k = lo; k < hi && at[k] <= ends; k++) {
					const stop = Math.min(w, Math.ceil((at[k] + 1) * bin - off));

					for (let x = Math.max(0, Math.floor(at[k] * bin - off)); x < stop; x++)
						heat[row + x] += copies[k];
				}
			}
		}
		let max = 0;

		for (let i = 0; i < size; i++)
			if (heat[i] > max)
				max = heat[i];
		this.max = max;
		this.many = many;
		this.top = top;
	}

	paint() {
		const w = this.nx, h = this.ny, life = this.mode === "life";

		if (!this.image || this.image.width !== w || this.image.height !== h)
			this.image = new ImageData(w, h);
		const image = this.image, out = new Uint32Array(image.data.buffer);
		const plot = pixel(rgb(this.colours.plot)), tint = pixel(rgb(this.colours.life)), marks = this.marks, loss = pixel(rgb(this.colours.hatch));
		const scale = this.max > 1 ? 255 / Math.log(this.max) : 0, step = (n) => scale ? Math.round(Math.log(n) * scale) : life ? 0 : 128;
		// Most cells have few copies: their logarithms are taken once.
		const few = Uint8Array.from({length: 256}, (_, n) => step(Math.min(n || 1, Math.max(this.max, 1))));
		const ramp32 = this.ramp32;
		const {method, methods, kind} = this.data;

		for (let line = 0; line < h; line++) {
			const m = method[this.first[line]], bar = life ? this.method32[m] : tint, lossy = this.lossy[line];
			const [every, open] = methods[m] ? stripesOf(methods[m], kind[this.first[line]]) : STRIPES.pinned;
			let alive = 0;

			for (let x = 0, i = line * w, j = line * (w + 1); x < w; x++, i++, j++) {
				const n = this.heat[i];

				alive += this.live[j];
				if (n) {
					const much = n < 256 ? few[n] : step(n);

					out[i] = life ? marks[m * 4 + (much >> 6)] : ramp32[much];
				} else if (!alive) {
					out[i] = plot;
				} else if (lossy && (x + line) % 6 < 3) {
					// With ground on both sides: its colour may be no other than that of the line.
					out[i] = (x + line) % 6 === 1 ? loss : plot;
				} else {
					out[i] = open && (x + line) % every < open ? plot : bar;
				}
			}
		}
		if (this.cells.width !== w || this.cells.height !== h) {
			this.cells.width = w;
			this.cells.height = h;
		}
		this.cells.getContext("2d").putImageData(image, 0, 0);
	}

	// ---- the picture ----

	draw() {
		cancelAnimationFrame(this.asked);
		this.asked = 0;
		if (!(this.t0 < this.t1))
			return;
		const g = this.base.getContext("2d", {alpha: false}), c = this.colours;

		g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
		g.fillStyle = c.plot;
		g.fillRect(0, 0, this.base.width, this.base.height);
		g.font = "12px system-ui, 'DejaVu Sans', sans-serif";
		g.textBaseline = "middle";
		this.fill();
		this.paint();
		g.save();
		g.beginPath();
		g.rect(this.left, AXIS, this.w, this.h);
		g.clip();
		g.imageSmoothingEnabled = false;
		if (this.rows.length) {
			const top = this.y(this.top), rows = this.many ? Math.min(Math.ceil(this.r1), this.rows.length) - this.top : this.ny;

			g.drawImage(this.cells, 0, 0, this.nx, this.ny, this.left, top, this.nx * CELL, rows * this.h / (this.r1 - this.r0));
		}
		g.restore();
		this.drawGroups(g);
		this.drawPinned(g);
		this.drawTimes(g);
		this.drawOver();
		this.hooks.drawn(this);
	}

	// Lines between groups of rows, and their labels where there is room.
	drawGroups(g) {
		const c = this.colours, perRow = this.h / (this.r1 - this.r0);
		let used = AXIS;

		g.strokeStyle = c.line;
		for (let i = 0; i < this.groups.length; i++) {
			const [first, label] = this.groups[i], next = i + 1 < this.groups.length ? this.groups[i + 1][0] : this.rows.length;
			const top = Math.max(AXIS, this.y(first)), bottom = Math.min(AXIS + this.h, this.y(next));

			if (bottom <= AXIS || top >= AXIS + this.h)
				continue;
			// Thin groups have a short line, which does not go through their labels.
			if ((next - first) * perRow >= 4 && first > this.r0) {
				const wide = (next - first) * perRow >= 18;

				g.beginPath();
				g.moveTo(wide ? 0 : this.left - 6, Math.round(top) + 0.5);
				g.lineTo(this.left + (wide ? this.w : 0), Math.round(top) + 0.5);
				g.stroke();
			}
			// A label may hang over into the next group where that has no room for its own.
			if (top >= used && top < AXIS + this.h - 12) {
				const name = next - first > 1 ? label + " \u00d7" + count(next - first) : label;

				// Thinner ones are many: what has a label is then a sample.
				g.fillStyle = bottom - top >= 4 ? c.ink : c.soft;
				g.fillText(shorten(g, name, this.left - 10), 5, top + 8);
				used = top + 14;
			}
		}
		if (!this.rows.length) {
			g.fillStyle = c.soft;
			g.fillText("no allocation to show", this.left + 12, AXIS + 20);
		}
		g.strokeStyle = c.soft;
		g.strokeRect(this.left - 0.5, AXIS - 0.5, this.w + 1, this.h + 1);
	}

	drawPinned(g) {
		const c = this.colours, top = AXIS + this.h + GAP, h = PINNED - 16, bottom = top + h, curve = this.curve;
		const most = curve && curve.peak || 1, y = (pages) => bottom - pages / most * (h - 14);

		g.save();
		g.beginPath();
		g.rect(this.left, top, this.w, h);
		g.clip();
		if (curve && curve.ns.length) {
			g.beginPath();
			g.moveTo(this.x(0), bottom);
			let at = 0;

			for (let i = 0; i < curve.ns.length; i++) {
				g.lineTo(this.x(curve.ns[i]), y(at));
				at = curve.pages[i];
				g.lineTo(this.x(curve.ns[i]), y(at));
			}
			g.lineTo(this.x(this.data.span), y(at));
			g.lineTo(this.x(this.data.span), bottom);
			g.fillStyle = c.area;
			g.fill();
			g.strokeStyle = c["area-line"];
			g.stroke();
			g.setLineDash([4, 3]);
			g.beginPath();
			g.moveTo(this.left, Math.round(y(most)) + 0.5);
			g.lineTo(this.left + this.w, Math.round(y(most)) + 0.5);
			g.stroke();
			g.setLineDash([]);
		}
		g.restore();
		g.strokeStyle = c.soft;
		g.strokeRect(this.left - 0.5, top - 0.5, this.w + 1, h + 1);
		g.fillStyle = c.ink;
		g.fillText(shorten(g, "Pinned pages", this.left - 10), 5, top + 8);
		g.fillStyle = c.soft;
		if (curve && curve.peak) {
			g.fillText(shorten(g, "peak " + (curve.atLeast ? ">= " : "") + count(curve.peak), this.left - 10), 5, top + 24);
			g.fillText(shorten(g, (curve.atLeast ? ">= " : "") + bytes(curve.peak * 4096), this.left - 10), 5, top + 40);
		} else {
			g.fillText("none", 5, top + 24);
		}
	}

	// The axis, checkpoints, and the times in which something can be missing, over both.
	drawTimes(g) {
		const c = this.colours, bottom = AXIS + this.h + GAP + PINNED - 16;
		const step = nice((this.t1 - this.t0) / Math.max(2, this.w / 110));

		g.fillStyle = c.soft;
		g.textAlign = "center";
		for (let t = Math.ceil(this.t0 / step) * step; t <= this.t1; t += step) {
			const x = this.x(t);

			g.strokeStyle = c.soft;
			g.beginPath();
			g.moveTo(x, AXIS - 4);
			g.lineTo(x, AXIS);
			g.moveTo(x, bottom);
			g.lineTo(x, bottom + 4);
			g.stroke();
			if (x > this.left + 14 && x < this.left + this.w - 14) {
				g.fillText(axisTime(t, step), x, 8);
				g.fillText(axisTime(t, step), x, bottom + 10);
			}
		}
		g.textAlign = "left";
		g.save();
		g.beginPath();
		g.rect(this.left, 0, this.w, bottom);
		g.clip();
		const stripes = this.data.gaps.length ? hatch(g, c.hatch) : null;

		for (const [from, to] of this.data.gaps) {
			const x0 = this.x(from), x1 = Math.max(this.x(to), x0 + 3);

			if (x1 < this.left || x0 > this.left + this.w)
				continue;
			g.fillStyle = stripes;
			g.fillRect(x0, AXIS, x1 - x0, this.h);
			g.fillRect(x0, AXIS + this.h + GAP, x1 - x0, PINNED - 16);
		}
		this.drawCheckpoints(g);
		g.restore();
	}

	drawCheckpoints(g) {
		let labelled = -1e9, drawn = -1e9, ruled = -1e9;

		g.fillStyle = g.strokeStyle = this.colours.accent;
		for (const [t, proc, label] of this.data.checkpoints) {
			const x = this.x(t);

			// Closer ones than this could not be told apart.
			if (this.proc >= 0 && proc !== this.proc || x < this.left - 1 || x > this.left + this.w + 1 || x - drawn < 2)
				continue;
			drawn = x;
			g.beginPath();
			g.moveTo(x - 4, AXIS);
			g.lineTo(x + 4, AXIS);
			g.lineTo(x, AXIS + 7);
			g.fill();
			// Lines as close as bars would hide what they are to divide.
			if (x - ruled >= 24) {
				g.globalAlpha = 0.45;
				g.fillRect(Math.round(x), AXIS, 1, this.h + GAP + PINNED - 16);
				g.globalAlpha = 1;
				ruled = x;
			}
			if (x - labelled > 90) {
				const name = shorten(g, label, 84), wide = g.measureText(name).width;

				g.fillStyle = this.colours.plot;
				g.fillRect(x + 5, AXIS + this.h + GAP + 1, wide + 6, 14);
				g.fillStyle = this.colours.accent;
				g.fillText(name, x + 8, AXIS + this.h + GAP + 8);
				labelled = x;
			}
		}
	}

	// What follows the pointer: not the picture under it.
	drawOver() {
		const g = this.over.getContext("2d"), c = this.colours, perRow = this.h / (this.r1 - this.r0);

		g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
		g.clearRect(0, 0, this.over.width, this.over.height);
		if (this.selected >= 0) {
			const row = this.rows.indexOf(this.selected), y = this.y(row);

			if (row >= 0 && y > AXIS - perRow && y < AXIS + this.h) {
				g.strokeStyle = c.mark;
				g.lineWidth = 2;
				g.strokeRect(this.left + 1, Math.max(AXIS + 1, y), this.w - 2, Math.max(3, Math.min(perRow, AXIS + this.h - y - 1)));
				g.lineWidth = 1;
			}
		}
		if (this.chosen) {
			g.fillStyle = c.accent;
			g.globalAlpha = 0.25;
			g.fillRect(...this.chosen);
			g.globalAlpha = 1;
			g.strokeStyle = c.accent;
			g.strokeRect(...this.chosen);
		}
		if (this.hit) {
			g.strokeStyle = c.mark;
			g.setLineDash([2, 2]);
			g.beginPath();
			g.moveTo(Math.round(this.hit.x) + 0.5, AXIS);
			g.lineTo(Math.round(this.hit.x) + 0.5, AXIS + this.h + GAP + PINNED - 16);
			g.stroke();
			g.setLineDash([]);
		}
	}

	// ---- what is where ----

	/*
	 * {x, t, alloc, others, copies}: at a place in the box. alloc -1: none, as in the pinned pages. Where rows share a line it is the one that moved the most.
	 */
	at(x, y) {
		if (x < this.left || x > this.left + this.w || !this.rows.length)
			return null;
		const t = this.t0 + (x - this.left) / this.w * (this.t1 - this.t0), hit = {x, t, alloc: -1, others: 0, copies: 0};
		const row = this.r0 + (y - AXIS) / this.h * (this.r1 - this.r0), per = Math.max(1, (this.r1 - this.r0) / this.h);

		if (y < AXIS || y >= AXIS + this.h)
			return hit;
		const first = Math.floor(row), last = Math.min(this.rows.length, per > 1 ? Math.ceil(row + per) : first + 1);
		let best = -1;

		for (let r = first; r < last; r++) {
			const a = this.rows[r], heat = this.data.h2d_bytes[a] + (this.all ? this.data.d2h_bytes[a] : 0);

			if (heat > best) {
				best = heat;
				hit.alloc = a;
			}
		}
		hit.others = Math.max(0, last - first - 1);
		if (hit.alloc >= 0)
			hit.copies = this.copiesIn(hit.alloc, t);
		return hit;
	}

	// Of one allocation, in the time of one cell.
	copiesIn(a, t) {
		const {at, copies, from, middle, to} = this.data, cell = (this.t1 - this.t0) / this.nx, start = this.t0 + Math.floor((t - this.t0) / cell) * cell;
		let n = 0;

		for (let part = 0; part < (this.all ? 2 : 1); part++) {
			const hi = part ? to[a] : middle[a];

			for (let k = lowerBound(at, part ? middle[a] : from[a], hi, Math.floor(start / this.width)); k < hi && at[k] * this.width < start + cell; k++)
				n += copies[k];
		}
		return n;
	}

	select(a, look) {
		this.selected = a;
		if (look && a >= 0) {
			const row = this.rows.indexOf(a), dr = Math.min(this.r1 - this.r0, 40), life = this.data.t1[a] - this.data.t0[a];

			if (row >= 0 && look === "closer")
				this.setView(this.data.t0[a] - 0.1 * life, this.data.t1[a] + 0.1 * life, row + 0.5 - dr / 2, row + 0.5 + dr / 2);
			else if (row >= 0 && (row < this.r0 || row + 1 > this.r1))
				this.setView(this.t0, this.t1, row + 0.5 - (this.r1 - this.r0) / 2, row + 0.5 + (this.r1 - this.r0) / 2);
		}
		this.drawOver();
	}
}

// ---- helpers ----

// The first of [lo, hi) that is not less.
function lowerBound(list, lo, hi, what) {
	while (lo < hi) {
		const mid = (lo + hi) >>> 1;

		if (list[mid] < what)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

// 1, 2 or 5 times a power of ten, not less.
function nice(n) {
	const p = 10 ** Math.floor(Math.log10(Math.max(n, 1e-9)));

	return [1, 2, 5, 10].find((f) => f * p >= n * 0.999) * p;
}

function axisTime(t, step) {
	const [unit, name] = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] : step >= 1e3 ? [1e3, "\u00b5s"] : [1, "ns"];

	return count(t / unit) + " " + name;
}

// Text cut to so many pixels.
function shorten(g, text, width) {
	if (g.measureText(text).width <= width)
		return text;
	let lo = 0, hi = Math.min(text.length, 200);

	while (lo < hi) {
		const mid = (lo + hi + 1) >>> 1;

		if (g.measureText(text.slice(0, mid) + "\u2026").width <= width)
			lo = mid;
		else
			hi = mid - 1;
	}
	return text.slice(0, lo) + "\u2026";
}
