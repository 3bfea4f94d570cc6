// SPDX-License-Identifier: GPL-2.0-only
// page.js: what any page of ttmon needs: its data, figures and text for people, tables, the tip, light and dark. What comes out of the data is text
// that traced programs chose: it goes into the page through clean() and textContent, never as markup.

const $ = (id) => document.getElementById(id);

// An element with text or elements in it; a name that begins with "on" is a listener.
function el(tag, attrs, ...inside) {
	const e = document.createElement(tag);

	for (const [name, value] of Object.entries(attrs || {})) {
		if (name.startsWith("on"))
			e.addEventListener(name.slice(2), value);
		else if (value === true)
			e.setAttribute(name, "");
		else if (value !== false && value !== null && value !== undefined)
			e.setAttribute(name, value);
	}
	e.append(...inside.filter((i) => i !== null && i !== undefined));
	return e;
}

// Without control characters and those that turn the direction of what follows.
function clean(text) {
	return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, "\ufffd");
}

// ---- figures ----

const numbers = new Intl.NumberFormat("en-US", {maximumFractionDigits: 0});
const count = (n) => numbers.format(n);

function bytes(n) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
	let unit = 0;

	for (; n >= 1023.95 && unit < units.length - 1; unit++)
		n /= 1024;
	return (unit ? n.toFixed(1) : n) + " " + units[unit];
}

function time(ns) {
	const abs = Math.abs(ns);

	if (abs < 1e3)
		return Math.round(ns) + " ns";
	if (abs < 999.95e3)
		return (ns / 1e3).toFixed(1) + " \u00b5s";
	if (abs < 999.95e6)
		return (ns / 1e6).toFixed(1) + " ms";
	if (abs < 119.95e9)
		return (ns / 1e9).toFixed(2) + " s";
	const s = Math.round(ns / 1e9);

	return s < 7200 ? Math.floor(s / 60) + " min " + s % 60 + " s" : Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
}

const percent = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(part < whole && part > 0.999 * whole ? 2 : 1) + " %" : "\u2013";
const many = (n, one, more) => count(n) + " " + (n === 1 ? one : more || one + "s");

// ---- data ----

// The bytes of a part of the page, unpacked.
async function loadPart(id) {
	const part = $(id), text = atob(part.textContent);
	const packed = new Uint8Array(text.length);

	for (let i = 0; i < text.length; i++)
		packed[i] = text.charCodeAt(i);
	part.remove();
	if (part.dataset.packed !== "gzip")
		return packed;
	if (typeof DecompressionStream === "undefined")
		throw new Error("this browser cannot unpack what is in the page: make it with ttmon view --plain");
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));

	return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Numbers of seven bits a byte, the lowest first.
function varints(data) {
	let at = 0;

	return () => {
		let byte = data[at++], n = byte & 127;

		for (let f = 128; byte & 128; f *= 128) {
			byte = data[at++];
			n += (byte & 127) * f;
		}
		return n;
	};
}

// ---- tables ----

/*
 * Rows that can be sorted by each column. columns: {title, num, value(row): to sort by, show(row): text or element}. pick(row): what a click
 * does. Only the first rows are made; a button makes the rest.
 */
function table(columns, rows, options) {
	const body = el("tbody"), first = options.first || 20;
	const more = el("button", {type: "button", class: "noprint", onclick: () => { shown = Math.min(rows.length, Math.max(shown * 4, 200)); fill(); }});
	let by = options.by || 0, down = options.down !== false, shown = first;

	const heads = columns.map((c, i) => el("th", {class: c.num && "num", scope: "col"}, el("button", {type: "button", title: c.help, onclick: () => {
		down = by === i ? !down : !!c.num;
		by = i;
		sort();
	}}, c.title)));

	function fill() {
		body.replaceChildren(...rows.slice(0, shown).map((row) => {
			const pick = options.pick && (() => options.pick(row));

			return el("tr", pick ? {class: "pick", tabindex: 0, onclick: pick, onkeydown: (e) => { if (e.key === "Enter") pick(); }} : null,
				...columns.map((c) => {
					const what = c.show ? c.show(row) : c.value(row);

					return el("td", {class: c.num ? "num" : c.name ? "name" : null}, what instanceof Node ? what : clean(what));
				}));
		}));
		more.textContent = "More of the " + count(rows.length);
		more.hidden = shown >= rows.length;
	}

	function sort() {
		const value = columns[by].value, sign = down ? -1 : 1;

		rows.sort((a, b) => {
			const x = value(a), y = value(b);

			return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
		});
		heads.forEach((h, i) => {
			h.setAttribute("aria-sort", i !== by ? "none" : down ? "descending" : "ascending");
			h.firstChild.textContent = columns[i].title + (i !== by ? "" : down ? " \u25be" : " \u25b4");
		});
		fill();
	}

	sort();
	return el("div", {class: "scroll"}, el("table", null, el("thead", null, el("tr", null, ...heads)), body), more);
}

// Pairs of a name and a figure.
function pairs(list) {
	return el("dl", null, ...list.filter((p) => p).flatMap(([name, value]) =>
		[el("dt", null, name), el("dd", null, value instanceof Node ? value : clean(value))]));
}

// ---- the tip beside the pointer ----

function showTip(x, y, ...inside) {
	const tip = $("tip");

	tip.replaceChildren(...inside);
	tip.hidden = false;
	const w = tip.offsetWidth, h = tip.offsetHeight;

	tip.style.left = Math.max(4, x + 16 + w > innerWidth ? x - w - 12 : x + 16) + "px";
	tip.style.top = Math.max(4, Math.min(y + 16, innerHeight - h - 4)) + "px";
}

const hideTip = () => { $("tip").hidden = true; };

// ---- light and dark ----

function isDark() {
	const set = document.documentElement.dataset.theme;

	return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// A button that turns it; changed() is called where it did, also by the system, or for paper.
function themeSwitch(button, changed) {
	const root = document.documentElement;
	let before = "";
	const update = () => {
		button.textContent = isDark() ? "Light" : "Dark";
		changed();
	};

	button.addEventListener("click", () => {
		root.dataset.theme = isDark() ? "light" : "dark";
		update();
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
	addEventListener("beforeprint", () => {
		before = root.dataset.theme || "";
		root.dataset.theme = "light";
		update();
	});
	addEventListener("afterprint", () => {
		if (before)
			root.dataset.theme = before;
		else
			delete root.dataset.theme;
		update();
	});
	button.textContent = isDark() ? "Light" : "Dark";
}

// ---- colours ----

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

function rgb(hex) {
	const h = hex.length === 4 ? hex.replace(/[0-9a-f]/gi, "$&$&") : hex;

	return [1, 3, 5].map((i) => parseInt(h.slice(i, i + 2), 16));
}

// As a pixel of an ImageData seen as 32-bit words, on the little-endian machines that there are.
const pixel = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;

// 256 steps from little to much, each further in lightness from the ground of the theme than the one before, also for the colour-blind; little is as
// far from what is only alive. tests/e2e/t_view.py measures it in the picture.
function ramp(dark) {
	const all = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
	const stops = (dark ? ["#3b4f89", ...all.slice(3)] : ["#5cc563", ...all.slice(0, 7).reverse()]).map(rgb);

	return Array.from({length: 256}, (_, i) => {
		const at = i / 255 * (stops.length - 1), k = Math.min(Math.floor(at), stops.length - 2);

		return stops[k].map((c, j) => Math.round(c + (at - k) * (stops[k + 1][j] - c)));
	});
}

// Stripes that say "not known".
function hatch(ctx, colourOf) {
	const c = document.createElement("canvas"), g = c.getContext("2d");

	c.width = c.height = 8;
	g.strokeStyle = colourOf;
	g.lineWidth = 1.5;
	for (const d of [-8, 0, 8]) {
		g.beginPath();
		g.moveTo(d - 1, 9);
		g.lineTo(d + 9, -1);
		g.stroke();
	}
	return ctx.createPattern(c, "repeat");
}

// ---- what goes wrong ----

function fail(why) {
	const note = el("p", {class: "notice"}, "This page cannot be shown: " + clean(why && why.message || why));

	$("wait").hidden = true;
	$("state").prepend(note);
	throw why;
}
