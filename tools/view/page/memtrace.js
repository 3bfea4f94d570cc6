// SPDX-License-Identifier: GPL-2.0-only
// memtrace.js: the page of ttmon memtrace view: what ttmon memtrace --json says (tools/memtrace/json.c), as tables and pictures.

const big = (v) => v === null || v === undefined ? 0 : Number(v);
const hex = (v) => typeof v === "string" ? v : "0x" + big(v).toString(16);
const figure = (v, digits) => v === null || v === undefined ? "\u2013" : v.toFixed(digits === undefined ? 2 : digits);
const share = (v) => v === null || v === undefined ? "\u2013" : (100 * v).toFixed(1) + " %";
const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);
const dims = (d) => d ? d.filter((n, i) => !i || n > 1 || d.slice(i).some((m) => m > 1)).join(" \u00d7 ") : "?";

// What ttmon shows for symbols, by symbol.
let names = new Map();
const shown = (text) => clean(names.get(text) || text);

// The name without return type, parameters and template arguments, where it is one of C++.
function shortName(name) {
	if (name === null)
		return "?";
	const text = shown(name);
	let depth = 0, out = "";

	for (const c of text.replaceAll("(anonymous namespace)::", "")) {
		if (c === "(" && !depth && out)
			break;
		depth += (c === "<") - (c === ">");
		if (!depth && c !== ">")
			out += c;
	}
	out = out.trim();
	return /^([\w:$*& ]+ )?[\w:$.~]+$/.test(out) ? out.slice(out.lastIndexOf(" ") + 1) : text;
}

// Text that takes one line, or two, however long it is; all of it shows above the pointer.
const cut = (short, whole) => el("span", {class: "cut", title: whole === null ? "" : clean(whole)}, short);
const twoLines = (text) => el("span", {class: "clamp", title: text}, text);
const kernelCell = (r) => cut(shortName(r.kernel), r.kernel);

// A canvas of this size with as many pixels as the screen has there.
function sharp(canvas, w, h) {
	const scale = devicePixelRatio || 1, g = canvas.getContext("2d");

	canvas.width = Math.round(w * scale);
	canvas.height = Math.round(h * scale);
	canvas.style.width = w + "px";
	canvas.style.height = h + "px";
	g.scale(scale, scale);
	g.font = "11px system-ui, sans-serif";
	return g;
}

function place(s) {
	if (s.file !== null)
		return baseName(clean(s.file)) + (s.line ? ":" + s.line : "");
	if (s.pc !== null)
		return "+" + hex(s.pc);
	return s.ptx_line ? "line " + s.ptx_line + " of the PTX" : "";
}

const bufferText = (b) => b.allocation ? shown(b.allocation.name || b.allocation.call_site || b.allocation.id) : big(b.size) ? hex(b.addr) : "others";
const memoryText = (b) => (b.allocation ? b.memory + " " : "") + bufferText(b);

// "launches 3 to 8", that touched a buffer.
function launchesOf(b, before) {
	if (b.first_launch === null)
		return "";
	const first = count(big(b.first_launch)), last = count(big(b.last_launch));

	return before + (b.last_launch === null || first === last ? "launch " + first : "launches " + first + " to " + last);
}

// Columns without those that no row has anything for.
const filled = (columns, rows) => columns.filter((c) => !c.some || rows.some(c.some));

// ", the 4,096 of 16,385 that ...", where the page has not all rows.
const leftOut = (d, what, which) => d[what].length < big(d.rows[what]) ? ", the " + count(d[what].length) + " of " + count(big(d.rows[what])) + " " + which : "";

// ---- what it is ----

function showHead(d) {
	const s = d.source, notes = [], total = d.totals.all, g = d.totals.global, sh = d.totals.shared;
	const card = (title, value, note) => $("cards").append(el("div", {class: "card"}, el("span", null, title), el("b", null, value), el("span", null, note || "")));

	document.title = "ttmon memtrace: " + baseName(clean(s.path));
	$("run").textContent = [clean(s.path), s.tool && clean(s.tool), many(big(s.records), "record"), many(big(s.launches), "launch", "launches")].filter((t) => t).join(" \u00b7 ");
	card("Requests", count(big(total.requests)), many(big(d.rows.sites), "instruction") + ", " + many(big(d.rows.kernels), "kernel"));
	card("Efficiency, global memory", share(g.efficiency), (d.selection.efficiency === "requested" ? "requested" : "distinct") + " bytes of the sectors moved");
	card("Sectors a request", figure(g.sectors_per_request), "ideal " + (big(g.requests) ? figure(big(g.ideal_sectors) / big(g.requests)) : "\u2013") + ", " + bytes(32 * big(g.sectors)) + " moved");
	card("Lanes a request", figure(total.lanes_per_request, 1), "of 32");
	if (big(sh.requests))
		card("Shared memory", figure(sh.wavefronts_per_request), "wavefronts a request, ideal " + figure(big(sh.ideal_wavefronts) / big(sh.requests)));
	if (s.cut)
		notes.push("The trace ends in the middle.");
	if (s.interrupted || s.failed)
		notes.push("It was not read to its end.");
	if (big(s.dropped))
		notes.push(many(big(s.dropped), "record") + " of " + count(big(s.produced)) + " were dropped: there was no room for them.");
	if (big(s.malformed))
		notes.push(many(big(s.malformed), "record") + " could not be understood.");
	if (big(s.inferred))
		notes.push("Which lanes were active is inferred for " + percent(big(s.inferred), big(s.records)) + " of the records: their sectors are upper bounds.");
	if (s.sample > 1)
		notes.push("One block in " + s.sample + " was recorded.");
	if (big(s.unknown_launches))
		notes.push(many(big(s.unknown_launches), "record") + " belong to launches that the trace does not describe.");
	for (const text of notes)
		$("state").append(el("p", {class: "notice"}, text));
	$("foot").textContent = "ttmon memtrace view. A sector is 32 bytes, a line 128; requests are instructions of a warp. What the figures mean: ttmon-memtrace(1).";
}

function showFindings(d, heat) {
	const list = d.findings.map((f) => {
		const item = el("li", null, el("b", null, f.what), f.estimated ? "" : el("span", {class: "soft", title: "of all sectors or wavefronts, that could be saved"}, " " + share(f.weight)),
			" ", el("span", {class: "text"}, clean(f.text)));
		const button = (text, act) => item.append(" ", el("button", {type: "button", class: "noprint small", onclick: act}, text));

		if (f.site !== undefined)
			button("Details", () => showSite(d.sites.find((s) => big(s.row) === big(f.site))));
		else if (f.buffer !== undefined && heat && heat.has(big(f.buffer)))
			button("Heat", () => heat.pick(big(f.buffer)));
		return item;
	});
	const ol = el("ol", null, ...list.slice(0, 12));
	const more = el("button", {type: "button", class: "noprint", onclick: () => { ol.append(...list.slice(12)); more.remove(); }}, "All of the " + count(list.length));

	$("findings").append(list.length ? ol : el("p", {class: "soft"}, d.sites.length ? "Nothing stands out." : "No access was recorded."));
	if (list.length > 12)
		$("findings").append(more);
	$("findings").hidden = false;
}

// ---- instructions ----

const short = new Intl.NumberFormat("en-US", {notation: "compact", maximumFractionDigits: 1});

const LANES = ["1", "2-3", "4-7", "8-15", "16-31", "32"], PAGES = ["1", "2", "3-4", "5-8", "9-16", "17-32", "33+"];

// Bars of a histogram with how many there are of each, largest in full height; null where all are 0. names: of its bins, where they are not 0, 1, 2 and so on.
function bars(hist, title, names) {
	const values = hist.map(big), most = Math.max(...values), from = values.findIndex((v) => v), to = values.findLastIndex((v) => v), last = values.length - 1;
	const label = (i) => names ? names[i] : i === last ? "more" : String(i);

	if (!most)
		return null;
	const canvas = el("canvas", {role: "img", "aria-label": title + ": " + values.map((v, i) => v ? count(v) + " of " + label(i) : "").filter((t) => t).join(", ")});
	const n = to - from + 1, step = n > 16 ? 18 : 34, h = 104, g = sharp(canvas, n * step, h);

	g.textAlign = "center";
	for (let i = from; i <= to; i++) {
		const x = (i - from) * step, high = values[i] / most * (h - 32);

		g.fillStyle = colour("area");
		g.fillRect(x + 1, h - 15 - high, step - 2, high);
		g.fillStyle = colour("area-line");
		g.fillRect(x + 1, h - 15 - high, step - 2, values[i] ? 2 : 0);
		g.fillStyle = colour("soft");
		g.fillText(label(i).replace("more", "33+"), x + step / 2, h - 3);
		if (values[i] && step > 20)
			g.fillText(short.format(values[i]), x + step / 2, h - 19 - high);
	}
	return el("figure", {"data-of": title}, el("figcaption", {class: "soft"}, title), canvas);
}

// How far requests are spread: of all of them, or of one instruction.
const figuresOf = (s) => [bars(s.lanes_bins, "Lanes a request", LANES), bars(s.sectors_histogram, "Sectors a request"), bars(s.lines_histogram, "Lines a request"),
	bars(s.pages_4k_bins, "Pages of 4 KiB a request", PAGES), bars(s.pages_2m_bins, "Pages of 2 MiB a request", PAGES), bars(s.wavefronts_histogram, "Wavefronts a request")];

function showSpread(d) {
	const figures = figuresOf(d.totals.all);

	$("spread-figures").replaceChildren(...figures.filter((f) => f));
	$("spread").hidden = figures.every((f) => !f);
}

let chosen = null;

function showSite(s) {
	const box = $("details");

	if (!s)
		return;
	chosen = s;
	box.replaceChildren(el("h2", null, el("span", {class: "text"}, clean(s.opcode || "?") + (place(s) ? " at " + place(s) : ""))),
		pairs([["Kernel", el("span", {class: "text"}, shown(s.kernel || "?"))], s.file !== null && ["Source", clean(s.file) + ":" + s.line],
			["What", s.space + " " + s.kind + ", " + many(big(s.width), "byte") + " a lane"],
			["Requests", count(big(s.requests)) + (big(s.inferred) ? ", " + percent(big(s.inferred), big(s.requests)) + " with inferred lanes" : "")],
			["Lanes a request", figure(s.lanes_per_request, 1)],
			s.sectors_per_request !== null && ["Sectors a request", figure(s.sectors_per_request) + ", ideal " + figure(big(s.ideal_sectors) / big(s.requests)) + "; lines " + figure(s.lines_per_request)],
			s.efficiency !== null && ["Efficiency", share(s.efficiency)],
			s.wavefronts_per_request !== null && ["Wavefronts a request", figure(s.wavefronts_per_request) + ", ideal " + figure(big(s.ideal_wavefronts) / big(s.requests)) + ", at most " + big(s.max_wavefronts)],
			s.class !== null && ["Pattern", Object.entries(s.classes).sort((a, b) => big(b[1]) - big(a[1])).map(([name, n]) => name + " " + percent(big(n), big(s.requests))).join(", ")],
			s.stride !== null && ["Stride", count(big(s.stride)) + " bytes"],
			s.step !== null && ["From one request of a warp to its next", count(big(s.step)) + " bytes"],
			big(s.max_same_word) > 1 && ["Lanes on one word", "at most " + big(s.max_same_word)],
			["Addresses", s.first_byte === undefined ? "\u2013" : hex(s.first_byte) + " to " + hex(s.last_byte)]]),
		el("div", {class: "figures"}, ...figuresOf(s)));
	box.hidden = false;
	box.scrollIntoView({block: "nearest"});
}

function showSites(d) {
	const columns = filled([
		{title: "Kernel", value: (s) => shortName(s.kernel), show: kernelCell},
		{title: "Instruction", value: (s) => clean(s.opcode || ""), show: (s) => cut(clean(s.opcode || ""), s.opcode)},
		{title: "Where", value: place, some: place, show: (s) => cut(place(s), s.file)},
		{title: "Space", value: (s) => s.space},
		{title: "Requests", num: true, value: (s) => big(s.requests), show: (s) => count(big(s.requests))},
		{title: "Sectors", num: true, help: "32-byte sectors a request", value: (s) => s.sectors_per_request || 0, show: (s) => figure(s.sectors_per_request)},
		{title: "Ideal", num: true, help: "sectors a request that its bytes need", value: (s) => big(s.ideal_sectors) / (big(s.requests) || 1), show: (s) => s.sectors_per_request === null ? "\u2013" : figure(big(s.ideal_sectors) / big(s.requests))},
		{title: "Efficiency", num: true, value: (s) => s.efficiency === null ? 2 : s.efficiency, show: (s) => share(s.efficiency)},
		{title: "Waves", num: true, help: "wavefronts of shared memory a request", some: (s) => s.wavefronts_per_request !== null, value: (s) => s.wavefronts_per_request || 0, show: (s) => figure(s.wavefronts_per_request)},
		{title: "Lanes", num: true, value: (s) => s.lanes_per_request, show: (s) => figure(s.lanes_per_request, 1)},
		{title: "Pattern", value: (s) => s.class || "", show: (s) => s.class === null ? "" : s.class + (s.stride !== null && s.class !== "sequential" ? " " + big(s.stride) + " B" : "")},
		{title: "Could save", num: true, help: "sectors, in shared memory wavefronts, past the ideal", value: (s) => big(s.could_save), show: (s) => count(big(s.could_save))},
	], d.sites);

	$("sites").append(table(columns, [...d.sites], {by: columns.length - 1, pick: showSite}));
	$("sites-note").textContent = "a click shows the details; efficiency is of " + (d.selection.efficiency === "requested" ? "all bytes that lanes asked for" : "distinct bytes") +
		leftOut(d, "sites", "with the most to save");
	$("sites").hidden = !d.sites.length;
}

// ---- heat ----

function showHeat(d) {
	const h = d.heat, plot = $("plot"), select = $("heat-buffer"), canvas = el("canvas"), left = 74, bottom = 20;
	const rowsOf = new Map(d.buffers.map((b) => [big(b.row), b]));
	let now = 0, first = 0, rows = 0;

	// A prefetch touches a buffer, and moves no sector.
	const buffers = h ? h.buffers.filter((b) => b.sectors.some((v) => big(v))) : [];

	if (!buffers.length)
		return null;
	const row = (i) => rowsOf.get(big(buffers[i].buffer));
	// Bytes from the beginning of the buffer on.
	const offset = (r) => row(now) ? bytes(Math.round(big(row(now).size) * r / h.rows)).replace(".0 ", " ") : "";

	plot.append(canvas);
	buffers.forEach((b, i) => select.append(el("option", {value: i}, row(i) ? memoryText(row(i)) + ", " + bytes(big(row(i).size)) + launchesOf(row(i), ", ") : "buffer " + big(b.buffer))));
	$("heat-note").textContent = "each column is " + many(big(h.records_per_column), "record");

	function cellAt(e) {
		const box = plot.getBoundingClientRect(), c = Math.floor((e.clientX - box.left - left) / (box.width - left) * h.columns);
		const r = first + Math.floor((e.clientY - box.top) / (box.height - bottom) * rows);

		if (c < 0 || c >= h.columns || r < first || r >= first + rows)
			return hideTip();
		showTip(e.clientX, e.clientY, el("span", {class: "text"}, row(now) ? memoryText(row(now)) : ""),
			pairs([["Bytes", offset(r) + " to " + offset(r + 1)],
				["Records", count(c * big(h.records_per_column)) + " to " + count((c + 1) * big(h.records_per_column))],
				["Sectors", count(big(buffers[now].sectors[r * h.columns + c]))]]));
	}

	function draw() {
		const cells = buffers[now].sectors.map(big), most = cells.reduce((a, b) => Math.max(a, b), 0), colours = ramp(isDark()), steps = colours.map(pixel), b = row(now);
		const at = (i) => Math.floor(i / h.columns);

		// Where no allocation is known, a buffer is what lies around: its ends say nothing.
		first = b && b.allocation ? 0 : Math.max(0, at(cells.findIndex((v) => v)));
		rows = b && b.allocation ? h.rows : at(cells.findLastIndex((v) => v)) + 1 - first;
		const w = Math.max(220, plot.clientWidth), high = Math.max(64, Math.min(320, rows * 10)), image = new ImageData(h.columns, rows), out = new Uint32Array(image.data.buffer);
		const small = document.createElement("canvas");

		for (let i = 0; i < out.length; i++) {
			const v = cells[first * h.columns + i];

			out[i] = v ? steps[Math.max(0, Math.min(255, Math.round(255 + 32 * Math.log2(v / most))))] : 0;
		}
		small.width = h.columns;
		small.height = rows;
		small.getContext("2d").putImageData(image, 0, 0);
		plot.style.height = high + bottom + "px";
		const g = sharp(canvas, w, high + bottom), down = Math.ceil(rows / Math.floor(high / 32)), across = Math.ceil(h.columns / (w > 700 ? 8 : 3));

		g.imageSmoothingEnabled = false;
		g.drawImage(small, left, 0, w - left, high);
		g.strokeStyle = colour("line");
		g.strokeRect(left - 0.5, -1, w - left + 2, high + 1.5);
		g.fillStyle = colour("soft");
		g.textAlign = "right";
		for (let r = 0; r < rows; r += down) {
			const y = r * high / rows;

			g.fillRect(left - 4, y, 4, 1);
			g.fillText(offset(first + r), left - 8, y + (r ? 4 : 10));
		}
		g.textAlign = "center";
		for (let c = 0; c < h.columns; c += across) {
			const x = left + c * (w - left) / h.columns;

			g.fillRect(x, high, 1, 4);
			g.fillText(count(c * big(h.records_per_column)), x, high + 15);
		}
		const bar = el("canvas"), k = sharp(bar, 160, 12);

		for (let i = 0; i < 160; i++) {
			k.fillStyle = "rgb(" + colours[Math.floor(i * 255 / 159)].join(" ") + ")";
			k.fillRect(i, 0, 1, 12);
		}
		$("legend").replaceChildren(el("span", null, count(Math.max(1, Math.floor(most / 256))), bar, many(most, "sector") + " in a cell; twice as many with each eighth of the bar"));
		$("heat-status").textContent = (b ? memoryText(b) + ": " + bytes(32 * big(b.sectors)) + " moved" + (b.coverage === null ? "" : ", " + share(b.coverage) + " of it touched") + ". " : "") +
			"Records of the trace go to the right, bytes of the buffer down.";
		plot.chart = {canvas, left, high, first, rows, columns: h.columns, cells, most};
	}

	const indexOf = (buffer) => buffers.findIndex((b) => big(b.buffer) === buffer);

	select.addEventListener("change", () => { now = Number(select.value); draw(); });
	plot.addEventListener("pointermove", cellAt);
	plot.addEventListener("pointerleave", hideTip);
	$("heat").hidden = false;
	draw();
	return {
		draw,
		has: (buffer) => indexOf(buffer) >= 0,
		pick(buffer) {
			if (indexOf(buffer) < 0)
				return;
			now = indexOf(buffer);
			select.value = now;
			draw();
			$("heat").scrollIntoView({block: "nearest"});
		},
	};
}

// ---- buffers, kernels, launches ----

// "ld.global.f32 at k.cu:14", the instruction that could save most in a buffer.
function worstText(b, sites) {
	const s = b.worst_sites.length ? sites.get(big(b.worst_sites[0].site)) : null;

	return s ? clean(s.opcode || "?") + (place(s) ? " at " + place(s) : "") : "";
}

const worstTitle = (b, sites) => b.worst_sites.slice(0, 3).filter((p) => sites.has(big(p.site))).map((p) => {
	const s = sites.get(big(p.site));

	return clean(s.opcode || "?") + " " + place(s) + " in " + shortName(s.kernel) + ": " + figure(big(p.sectors) / (big(p.requests) || 1)) + " sectors a request, ideal " + figure(big(p.ideal_sectors) / (big(p.requests) || 1));
}).join("\n");

function showBuffers(d, heat) {
	const sites = new Map(d.sites.map((s) => [big(s.row), s])), uses = {read: "read only", write: "write only", both: "read, write"};
	const untouched = d.findings.filter((f) => f.what === "untouched" && f.allocation);
	const columns = filled([
		{title: "Buffer", value: bufferText, show: (b) => cut(bufferText(b), b.allocation ? b.allocation.id + " at " + hex(b.addr) : "")},
		{title: "Memory", some: (b) => b.allocation, value: (b) => b.allocation ? b.memory : ""},
		{title: "Size", num: true, value: (b) => big(b.size), show: (b) => bytes(big(b.size))},
		{title: "Requests", num: true, value: (b) => big(b.requests) + big(b.touches), show: (b) => count(big(b.requests) + big(b.touches))},
		{title: "Reads", num: true, value: (b) => big(b.reads), show: (b) => count(big(b.reads))},
		{title: "Writes", num: true, value: (b) => big(b.writes), show: (b) => count(big(b.writes))},
		{title: "Use", help: "what kernels do to it", value: (b) => uses[b.use] || "?"},
		{title: "Moved", num: true, help: "sectors, 32 bytes each", value: (b) => big(b.sectors), show: (b) => bytes(32 * big(b.sectors))},
		{title: "Touched", num: true, help: "distinct sectors, of its size", value: (b) => b.coverage || 0, show: (b) => share(b.coverage)},
		{title: "Efficiency", num: true, value: (b) => b.efficiency === null ? 2 : b.efficiency, show: (b) => share(b.efficiency)},
		{title: "Copied", num: true, help: "by transfers", some: (b) => b.allocation, value: (b) => b.allocation ? big(b.allocation.copied) : 0, show: (b) => b.allocation ? bytes(big(b.allocation.copied)) : "\u2013"},
		{title: "Launches", help: "the first and the last that touched it", value: (b) => big(b.first_launch), show: (b) => launchesOf(b, "").replace(/^launch(es)? /, "")},
		{title: "Worst instruction", help: "with most sectors to save in it", some: (b) => worstText(b, sites), value: (b) => worstText(b, sites), show: (b) => cut(worstText(b, sites), worstTitle(b, sites))},
	], d.buffers);

	if (!d.buffers.length && !untouched.length)
		return;
	$("buffers").append(table(columns, [...d.buffers], {by: columns.findIndex((c) => c.title === "Moved"), pick: heat && ((b) => heat.pick(big(b.row)))}));
	$("buffers-note").textContent = (heat ? "a click shows where and when it is touched" : "") + leftOut(d, "buffers", "that moved most");
	if (untouched.length)
		$("buffers").append(el("p", null, "Allocated, and not touched by any kernel recorded: " + untouched.slice(0, 20).map((f) => f.allocation.memory + " " +
			shown(f.allocation.name || f.allocation.call_site || f.allocation.id) + " (" + bytes(big(f.allocation.size)) + ")").join(", ") +
			(untouched.length > 20 ? " and " + count(untouched.length - 20) + " more" : "")));
	$("buffers").hidden = false;
}

function showKernels(d) {
	const of = (k, kinds) => Object.values(k.mix).reduce((n, m) => n + kinds.reduce((a, kind) => a + big(m[kind]), 0), 0);
	const all = (k) => Object.values(k.mix).reduce((n, m) => n + Object.values(m).reduce((a, v) => a + big(v), 0), 0);
	const space = (k, name) => Object.values(k.mix[name] || {}).reduce((a, v) => a + big(v), 0);
	const part = (title, f) => ({title, num: true, value: (k) => f(k) / (all(k) || 1), show: (k) => percent(f(k), all(k))});

	$("kernels").append(table([
		{title: "Kernel", name: true, value: (k) => shown(k.kernel || "?"), show: (k) => twoLines(shown(k.kernel || "?"))},
		{title: "Launches", num: true, value: (k) => big(k.launches), show: (k) => k.device_function ? "device function" : count(big(k.launches))},
		{title: "Requests", num: true, value: all, show: (k) => count(all(k))},
		part("Loads", (k) => of(k, ["load", "ldmatrix", "copy from"])), part("Stores", (k) => of(k, ["store", "stmatrix", "copy to"])), part("Atomics", (k) => of(k, ["atomic", "reduction"])),
		part("Global", (k) => space(k, "global") + space(k, "generic")), part("Shared", (k) => space(k, "shared")), part("Local", (k) => space(k, "local")),
		{title: "Bytes a lane", value: (k) => Object.keys(k.widths).join(", ")},
		{title: "Efficiency", num: true, value: (k) => k.global.efficiency === null ? 2 : k.global.efficiency, show: (k) => share(k.global.efficiency)},
	], [...d.kernels], {by: 2}));
	$("kernels-note").textContent = "what their instructions are, by requests" + leftOut(d, "kernels", "with the most requests");
	$("kernels").hidden = !d.kernels.length;
}

function showLaunches(d) {
	const contextOf = (l) => (l.pid === null ? "" : l.pid + ":") + hex(l.context), several = new Set(d.launches.map(contextOf)).size > 1;

	$("launches").append(table(filled([
		{title: "Context", some: () => several, value: contextOf},
		{title: "Id", num: true, value: (l) => big(l.id), show: (l) => l.id === null ? "others" : count(big(l.id))},
		{title: "Kernel", value: (l) => shortName(l.kernel), show: kernelCell},
		{title: "Grid", value: (l) => dims(l.grid)}, {title: "Block", value: (l) => dims(l.block)},
		{title: "Requests", num: true, value: (l) => big(l.global.requests) + big(l.shared.requests) + big(l.local.requests), show: (l) => count(big(l.global.requests) + big(l.shared.requests) + big(l.local.requests))},
		{title: "Moved", num: true, value: (l) => big(l.global.sectors), show: (l) => bytes(32 * big(l.global.sectors))},
		{title: "Working set", num: true, value: (l) => big(l.distinct_sectors), show: (l) => (l.distinct_estimated ? "\u2248 " : "") + bytes(32 * big(l.distinct_sectors))},
		{title: "Of the launch before", num: true, value: (l) => big(l.again_sectors), show: (l) => percent(big(l.again_sectors), big(l.distinct_sectors))},
		{title: "Efficiency", num: true, value: (l) => l.global.efficiency === null ? 2 : l.global.efficiency, show: (l) => share(l.global.efficiency)},
		{title: "", value: (l) => [l.graph && "graph node", l.sampled && "sampled", !l.described && "not described"].filter((t) => t).join(", ")},
	], d.launches), [...d.launches], {by: several ? 1 : 0, down: false}));
	$("launches-note").textContent = leftOut(d, "launches", "that moved most").slice(2);
	$("launches").hidden = !d.launches.length;
}

function showReuse(d) {
	const r = d.reuse, canvas = el("canvas"), plot = $("reuse-plot"), size = (m) => bytes(big(m.cache_bytes)).replace(".0 ", "\u00a0");

	if (!r || !big(r.touches))
		return;
	plot.append(canvas);
	$("reuse-note").textContent = (r.exact ? "exact" : "from a sample") + ", least recently used, 32-byte sectors, in the order of the trace" +
		(d.source.grouped ? "; in doubt: records come grouped by instruction, not as they arrived (--order of record and convert keeps that)" : "");
	$("reuse-text").textContent = r.misses.map((m) => size(m) + "\u00a0" + share(m.ratio).replace(" ", "\u00a0")).join(" \u00b7 ");
	$("reuse").hidden = false;
	return function draw() {
		const w = Math.max(200, plot.clientWidth), h = 180, g = sharp(canvas, w, h), left = 44, bottom = 20, every = w > 700 ? 2 : 4;
		const x = (i) => left + i * (w - left - 12) / (r.misses.length - 1), y = (v) => 8 + (1 - v) * (h - bottom - 8);

		plot.style.height = h + "px";
		g.strokeStyle = colour("grid");
		g.fillStyle = colour("soft");
		for (const v of [0, 0.25, 0.5, 0.75, 1]) {
			g.beginPath();
			g.moveTo(left, y(v));
			g.lineTo(w, y(v));
			g.stroke();
			g.textAlign = "right";
			g.fillText(100 * v + " %", left - 6, y(v) + 4);
		}
		g.textAlign = "center";
		r.misses.forEach((m, i) => { if (i % every === 0) g.fillText(size(m), Math.min(Math.max(x(i), left + 16), w - 26), h - 5); });
		g.strokeStyle = colour("area-line");
		g.lineWidth = 2;
		g.beginPath();
		r.misses.forEach((m, i) => g.lineTo(x(i), y(m.ratio === null ? 0 : m.ratio)));
		g.stroke();
	};
}

function showCoverage(d) {
	if (!d.coverage.length)
		return;
	$("coverage").append(table([
		{title: "Kernel", name: true, value: (k) => shown(k.kernel || "?"), show: (k) => twoLines(shown(k.kernel || "?"))},
		{title: "Module", value: (k) => clean(k.module || ""), show: (k) => cut(baseName(clean(k.module || "")), k.module)},
		{title: "Launches", num: true, value: (k) => big(k.launches), show: (k) => count(big(k.launches))},
		{title: "Recorded", num: true, value: (k) => big(k.recorded), show: (k) => count(big(k.recorded))},
		{title: "Instructions", num: true, value: (k) => big(k.sites), show: (k) => count(big(k.sites))},
		{title: "Left out", num: true, help: "instructions that access memory and are not recorded", value: (k) => big(k.left_out), show: (k) => count(big(k.left_out))},
		{title: "Why not", name: true, value: (k) => clean(k.why_not || "")},
	], [...d.coverage], {by: 2}));
	$("coverage").hidden = false;
}

async function start() {
	const d = JSON.parse(new TextDecoder().decode(await loadPart("report")));
	names = new Map(Object.entries(JSON.parse(new TextDecoder().decode(await loadPart("names")))));

	$("wait").hidden = true;
	showHead(d);
	const heat = showHeat(d);

	showFindings(d, heat);
	showSites(d);
	showSpread(d);
	showBuffers(d, heat);
	showKernels(d);
	showLaunches(d);
	const reuse = showReuse(d);
	const draw = () => {
		if (heat)
			heat.draw();
		if (reuse)
			reuse();
	};

	showCoverage(d);
	if (reuse)
		reuse();
	addEventListener("resize", draw);
	themeSwitch($("theme"), () => {
		draw();
		showSite(chosen);
		showSpread(d);
	});
	document.documentElement.dataset.ready = "yes";
}

start().catch(fail);
