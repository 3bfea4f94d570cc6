// SPDX-License-Identifier: GPL-2.0-only
// input.js: the pointer and the keys of a chart (chart.js).

function listen(chart) {
	const box = chart.box, place = (e) => {
		const r = box.getBoundingClientRect();

		return [e.clientX - r.left - 1, e.clientY - r.top - 1];
	};
	let from = null;

	box.addEventListener("pointermove", (e) => {
		const [x, y] = place(e);

		if (!from) {
			chart.hit = chart.at(x, y);
			chart.drawOver();
			chart.hooks.hover(chart.hit, e.clientX, e.clientY);
			return;
		}
		const dx = x - from.x, dy = y - from.y;

		if (!from.moved && Math.hypot(dx, dy) < 4)
			return;
		from.moved = true;
		chart.hit = null;
		chart.hooks.hover(null);
		if (from.box) {
			chart.chosen = [Math.min(x, from.x), Math.min(y, from.y), Math.abs(dx), Math.abs(dy)];
			chart.drawOver();
			return;
		}
		box.classList.add("dragging");
		const t = dx / chart.w * (from.t1 - from.t0), r = dy / chart.h * (from.r1 - from.r0);

		chart.setView(from.t0 - t, from.t1 - t, from.r0 - r, from.r1 - r);
	});
	box.addEventListener("pointerdown", (e) => {
		const [x, y] = place(e);

		if (e.button !== 0)
			return;
		from = {x, y, t0: chart.t0, t1: chart.t1, r0: chart.r0, r1: chart.r1, box: e.shiftKey};
		// Other kinds of pointers scroll the page.
		if (e.pointerType === "mouse")
			box.setPointerCapture(e.pointerId);
	});
	const end = (e) => {
		const [x, y] = place(e), was = from;

		from = null;
		box.classList.remove("dragging");
		if (was && was.moved && chart.chosen)
			zoomTo(chart, chart.chosen);
		chart.chosen = null;
		if (was && !was.moved && e.type === "pointerup") {
			const hit = chart.at(x, y);

			chart.hooks.pick(hit ? hit.alloc : -1);
		}
		chart.drawOver();
	};

	box.addEventListener("pointerup", end);
	box.addEventListener("pointercancel", end);
	box.addEventListener("pointerleave", () => {
		chart.hit = null;
		chart.hooks.hover(null);
		chart.drawOver();
	});
	box.addEventListener("wheel", (e) => {
		const [x, y] = place(e), d = e.deltaY || e.deltaX, factor = Math.exp(Math.max(-1, Math.min(1, d * (e.deltaMode ? 0.05 : 0.002))));

		// Nothing is further away: the page scrolls.
		if (d > 0 && chart.isHome())
			return;
		e.preventDefault();
		if (e.shiftKey)
			chart.zoom(1, factor, 0.5, (y - AXIS) / chart.h);
		else
			chart.zoom(factor, 1, (x - chart.left) / chart.w);
	}, {passive: false});
	box.addEventListener("keydown", (e) => key(chart, e));
}

function zoomTo(chart, [x, y, w, h]) {
	const t = (px) => chart.t0 + (px - chart.left) / chart.w * (chart.t1 - chart.t0), r = (py) => chart.r0 + (py - AXIS) / chart.h * (chart.r1 - chart.r0);

	if (y < AXIS + chart.h && h > 8)
		chart.setView(t(x), t(x + w), r(Math.max(y, AXIS)), r(Math.min(y + h, AXIS + chart.h)));
	else
		chart.setView(t(x), t(x + w), chart.r0, chart.r1);
}

function key(chart, e) {
	const dt = (chart.t1 - chart.t0) * 0.2;
	const moves = {
		ArrowLeft: () => chart.setView(chart.t0 - dt, chart.t1 - dt, chart.r0, chart.r1),
		ArrowRight: () => chart.setView(chart.t0 + dt, chart.t1 + dt, chart.r0, chart.r1),
		ArrowUp: () => step(chart, -1),
		ArrowDown: () => step(chart, 1),
		PageUp: () => step(chart, -Math.max(1, Math.round((chart.r1 - chart.r0) / 2))),
		PageDown: () => step(chart, Math.max(1, Math.round((chart.r1 - chart.r0) / 2))),
		"+": () => chart.zoom(0.5, 1),
		"=": () => chart.zoom(0.5, 1),
		"-": () => chart.zoom(2, 1),
		"[": () => chart.zoom(1, 2),
		"]": () => chart.zoom(1, 0.5),
		"0": () => chart.fit(),
		Escape: () => chart.hooks.pick(-1),
	};

	if (e.ctrlKey || e.altKey || e.metaKey || !moves[e.key])
		return;
	e.preventDefault();
	moves[e.key]();
}

// The allocation so many rows further down.
function step(chart, n) {
	if (!chart.rows.length)
		return;
	const row = chart.rows.indexOf(chart.selected);

	chart.hooks.pick(chart.rows[row < 0 ? Math.floor(chart.r0) : Math.max(0, Math.min(chart.rows.length - 1, row + n))]);
}
