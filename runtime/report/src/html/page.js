// Draws the panels of a report: one canvas per panel, one time axis for all. It loads nothing.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const host = document.getElementById('charts');
  const reset = document.getElementById('reset');
  const tip = document.getElementById('tip');
  const RIGHT = 92, BOTTOM = 22, TOP = 8, LEFT = 4;
  const whole = { from: 0, to: Math.max(data.length, 1) };
  let view = { ...whole };
  let pointer = null;          // time under the pointer; null outside the charts
  let drag = null;             // time at the start of a drag, or null

  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const make = (tag, parent) => parent.appendChild(document.createElement(tag));

  // Formats numbers and times as text.
  const plain = (value, digits) => value
    .toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
    .replace('-', '\u2212');
  const exact = value => value.toLocaleString('en-US', { maximumFractionDigits: 8 }).replace('-', '\u2212');
  const two = value => String(value).padStart(2, '0');
  function clock(ms, fine) {
    const at = new Date(data.start + ms);
    const text = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
    return fine ? `${text}.${String(at.getUTCMilliseconds()).padStart(3, '0')}` : text;
  }
  const day = ms => new Date(data.start + ms).toISOString().slice(0, 10);

  // Index of the last entry of a sorted list that is not after `t`; -1 if all entries are after it.
  function floor(list, t) {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] <= t) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  function niceStep(span, count) {
    const rough = span / count, power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 2.5, 5, 10].find(factor => factor * power >= rough * 0.999) * power;
  }
  const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
  const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND,
    30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR,
    6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY];

  class Panel {
    constructor(spec) {
      Object.assign(this, spec);
      this.shown = this.series.map(() => true);
      this.sides = { 1: true, '-1': true };
      const figure = make('figure', host);
      figure.className = 'panel';
      const caption = make('figcaption', figure);
      const title = make('strong', caption);
      title.textContent = this.title;
      if (this.unit) {
        const unit = make('span', title);
        unit.className = 'soft';
        unit.textContent = `  ${this.unit}`;
        unit.style.fontWeight = 400;
      }
      this.keys = this.series.map((series, at) =>
        this.key(caption, series.name, '\u25cf', `var(--s${at % 6})`, () => this.shown[at], on => { this.shown[at] = on; }));
      if (this.marks && this.marks.length) {
        const sides = [[1, 'buys', '\u25b2', 'var(--good)'], [-1, 'sells', '\u25bc', 'var(--bad)']];
        for (const [side, name, sign, color] of sides) {
          this.key(caption, name, sign, color, () => this.sides[side], on => { this.sides[side] = on; });
        }
        const maker = make('span', caption);
        maker.className = 'soft';
        maker.textContent = 'filled: maker, hollow: taker';
      }
      this.canvas = make('canvas', figure);
      this.canvas.style.height = `${this.height}px`;
      this.canvas.setAttribute('role', 'img');
      this.canvas.setAttribute('aria-label', this.title);
      if (this.note) {
        const note = make('p', figure);
        note.className = 'soft';
        note.textContent = this.note;
      }
      this.listen();
    }

    key(caption, name, sign, color, shown, show) {
      const button = make('button', caption);
      button.type = 'button';
      button.title = 'show or hide';
      button.dataset.sign = sign;
      button.style.setProperty('--key', color);
      button.textContent = name;
      button.addEventListener('click', () => {
        show(!shown());
        button.classList.toggle('off', !shown());
        drawAll();
      });
      return button;
    }

    timeAt(event) {
      const box = this.canvas.getBoundingClientRect();
      const part = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
      return view.from + Math.min(1, Math.max(0, part)) * (view.to - view.from);
    }

    listen() {
      const canvas = this.canvas;
      canvas.addEventListener('pointerdown', event => {
        if (event.button !== 0) return;
        drag = this.timeAt(event);
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener('pointermove', event => {
        pointer = this.timeAt(event);
        drawAll();
        this.hint(event);
      });
      canvas.addEventListener('pointerup', event => {
        const to = this.timeAt(event), from = drag;
        drag = null;
        const enough = (view.to - view.from) / 200;
        if (from !== null && Math.abs(to - from) > enough) zoom(Math.min(from, to), Math.max(from, to));
        else drawAll();
      });
      canvas.addEventListener('pointercancel', () => { drag = null; drawAll(); });
      canvas.addEventListener('pointerleave', () => { pointer = null; tip.hidden = true; drawAll(); });
      canvas.addEventListener('dblclick', () => zoom(whole.from, whole.to));
      canvas.addEventListener('wheel', event => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const at = this.timeAt(event), factor = event.deltaY > 0 ? 1.25 : 0.8;
        zoom(at - (at - view.from) * factor, at + (view.to - at) * factor);
      }, { passive: false });
    }

    // The smallest and the largest visible value.
    range() {
      let low = Infinity, high = -Infinity;
      this.series.forEach((series, at) => {
        if (!this.shown[at]) return;
        const first = Math.max(0, floor(series.t, view.from));
        for (let i = first; i < series.t.length && series.t[i] <= view.to; i++) {
          if (series.lo[i] < low) low = series.lo[i];
          if (series.hi[i] > high) high = series.hi[i];
        }
      });
      for (const mark of this.visibleMarks()) {
        low = Math.min(low, mark[1]);
        high = Math.max(high, mark[1]);
      }
      if (this.style !== 'line') { low = Math.min(low, 0); high = Math.max(high, 0); }
      if (!(low <= high)) return [0, 1];
      const pad = (high - low) * 0.07 || Math.abs(high) * 0.0001 || 1;
      return [low - pad, this.style === 'depth' ? high : high + pad];
    }

    visibleMarks() {
      if (!this.marks) return [];
      return this.marks.filter(mark => mark[0] >= view.from && mark[0] <= view.to && this.sides[mark[3]]);
    }

    draw() {
      const scale = window.devicePixelRatio || 1;
      const width = this.canvas.clientWidth, height = this.height;
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      const pen = this.canvas.getContext('2d');
      pen.scale(scale, scale);
      pen.font = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
      const [low, high] = this.range();
      const plotWidth = width - LEFT - RIGHT, plotHeight = height - TOP - BOTTOM;
      this.x = t => LEFT + (t - view.from) / (view.to - view.from) * plotWidth;
      this.y = v => TOP + (high - v) / (high - low) * plotHeight;
      this.grid(pen, low, high, plotWidth, plotHeight);
      pen.save();
      pen.beginPath();
      pen.rect(LEFT, TOP - 4, plotWidth, plotHeight + 8);
      pen.clip();
      const lines = () => this.series.forEach((series, at) => {
        if (this.shown[at]) this.line(pen, series, css(`--s${at % 6}`));
      });
      // Draw many marks below the line, because they would hide it.
      const marks = this.visibleMarks();
      if (marks.length > 600) { this.fills(pen, marks); lines(); } else { lines(); this.fills(pen, marks); }
      this.cursor(pen, plotHeight);
      pen.restore();
      this.readout();
    }

    grid(pen, low, high, plotWidth, plotHeight) {
      const step = niceStep(high - low, Math.min(7, Math.max(2, plotHeight / 28)));
      const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9) + (/^2\.5/.test(step.toExponential()) ? 1 : 0)));
      pen.lineWidth = 1;
      pen.textBaseline = 'middle';
      pen.textAlign = 'left';
      for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6; v += step) {
        const y = Math.round(this.y(v)) + 0.5, zero = Math.abs(v) < step * 1e-6;
        pen.strokeStyle = css(zero && this.style !== 'line' ? '--soft' : '--grid');
        pen.beginPath();
        pen.moveTo(LEFT, y);
        pen.lineTo(LEFT + plotWidth, y);
        pen.stroke();
        pen.fillStyle = css('--soft');
        pen.fillText(plain(zero ? 0 : v, digits), LEFT + plotWidth + 8, y);
      }
      const span = view.to - view.from, wanted = span / Math.max(2, plotWidth / 110);
      const tick = STEPS.find(candidate => candidate >= wanted) || STEPS[STEPS.length - 1];
      pen.textAlign = 'center';
      pen.textBaseline = 'alphabetic';
      const offset = data.start % tick;
      for (let t = Math.ceil((view.from + offset) / tick) * tick - offset; t <= view.to; t += tick) {
        const x = Math.round(this.x(t)) + 0.5;
        pen.strokeStyle = css('--grid');
        pen.beginPath();
        pen.moveTo(x, TOP);
        pen.lineTo(x, TOP + plotHeight);
        pen.stroke();
        const text = tick >= DAY ? day(t) : tick >= MINUTE && span > DAY ? `${day(t).slice(5)} ${clock(t).slice(0, 5)}` : clock(t, tick < SECOND);
        const half = pen.measureText(text).width / 2;
        pen.fillStyle = css('--soft');
        pen.fillText(text, Math.min(Math.max(x, LEFT + half), LEFT + plotWidth - half), TOP + plotHeight + 16);
      }
    }

    line(pen, series, color) {
      const { t, v, lo, hi } = series;
      if (!t.length) return;
      const first = Math.max(0, floor(t, view.from));
      const last = Math.min(t.length - 1, floor(t, view.to) + 1);
      pen.fillStyle = pen.strokeStyle = color;
      // With about as many values as pixels, a step chart would be one solid area: use faint lines.
      const crowded = this.style === 'step' && last - first > (this.x(view.to) - LEFT) / 3;
      if ((this.style !== 'step' || crowded) && t.length > 1) {
        pen.globalAlpha = crowded ? 0.45 : 0.22;
        pen.beginPath();
        for (let i = first; i <= last; i++) pen.lineTo(this.x(t[i]), this.y(hi[i]));
        for (let i = last; i >= first; i--) pen.lineTo(this.x(t[i]), this.y(this.style === 'depth' ? 0 : lo[i]));
        pen.fill();
        pen.globalAlpha = 1;
      }
      if (crowded) pen.globalAlpha = 0.4;
      pen.lineWidth = crowded ? 1 : 1.4;
      pen.lineJoin = 'round';
      pen.beginPath();
      for (let i = first; i <= last; i++) {
        if (this.style === 'step' && i > first) pen.lineTo(this.x(t[i]), this.y(v[i - 1]));
        if (this.style === 'step' && lo[i] !== hi[i]) {
          pen.lineTo(this.x(t[i]), this.y(lo[i]));
          pen.lineTo(this.x(t[i]), this.y(hi[i]));
        }
        pen.lineTo(this.x(t[i]), this.y(v[i]));
      }
      pen.stroke();
      pen.globalAlpha = 1;
      if (first === last) {
        pen.beginPath();
        pen.arc(this.x(t[first]), this.y(v[first]), 2.5, 0, 7);
        pen.fill();
      }
    }

    fills(pen, marks) {
      const size = marks.length > 1500 ? 2.2 : marks.length > 600 ? 3 : marks.length > 150 ? 4 : 5.5;
      const colors = { 1: css('--good'), '-1': css('--bad') };
      pen.lineWidth = 1.2;
      pen.globalAlpha = marks.length > 600 ? 0.7 : 0.95;
      for (const [t, price, , side, maker] of marks) {
        const x = this.x(t), y = this.y(price);
        pen.beginPath();
        pen.moveTo(x, y - side * size);
        pen.lineTo(x - size, y + side * size);
        pen.lineTo(x + size, y + side * size);
        pen.closePath();
        pen.fillStyle = maker ? colors[side] : css('--card');
        pen.strokeStyle = maker ? css('--card') : colors[side];
        pen.fill();
        if (!maker || size > 4) pen.stroke();
      }
      pen.globalAlpha = 1;
    }

    cursor(pen, plotHeight) {
      if (pointer === null) return;
      const x = this.x(pointer);
      if (drag !== null) {
        pen.fillStyle = css('--accent');
        pen.globalAlpha = 0.14;
        pen.fillRect(Math.min(x, this.x(drag)), TOP, Math.abs(x - this.x(drag)), plotHeight);
        pen.globalAlpha = 1;
      }
      pen.strokeStyle = css('--soft');
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.moveTo(x, TOP);
      pen.lineTo(x, TOP + plotHeight);
      pen.stroke();
      pen.setLineDash([]);
    }

    // Shows in the caption the values under the pointer, or at the end of the view.
    readout() {
      const at = pointer === null ? view.to : pointer;
      this.series.forEach((series, index) => {
        const i = floor(series.t, at);
        const value = i < 0 ? '' : ` ${exact(series.v[i])}`;
        const text = `${series.name}${value}`;
        if (this.keys[index].textContent !== text) this.keys[index].textContent = text;
      });
    }

    // Shows the fill nearest to the pointer, or the time.
    hint(event) {
      const box = this.canvas.getBoundingClientRect();
      const px = event.clientX - box.left, py = event.clientY - box.top;
      let best = null, distance = 10;
      for (const mark of this.visibleMarks()) {
        const away = Math.hypot(this.x(mark[0]) - px, this.y(mark[1]) - py);
        if (away < distance) { distance = away; best = mark; }
      }
      if (best) {
        const [t, price, qty, side, maker, strategy] = best;
        tip.textContent = `${clock(t, true)}  ${data.strategies[strategy]}  ${side > 0 ? 'BUY' : 'SELL'} ${exact(qty)} at ${exact(price)}  ${maker ? 'maker' : 'taker'}`;
      } else {
        tip.textContent = `${day(pointer)} ${clock(pointer, view.to - view.from < HOUR)} UTC`;
      }
      tip.hidden = false;
      const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
      tip.style.left = `${left}px`;
      tip.style.top = `${event.clientY + 16}px`;
    }
  }

  function zoom(from, to) {
    const least = Math.min(5, whole.to);
    if (to - from < least) return;
    view = { from: Math.max(whole.from, from), to: Math.min(whole.to, to) };
    reset.hidden = view.from === whole.from && view.to === whole.to;
    drawAll();
  }

  const panels = data.panels.map(spec => new Panel(spec));
  let waiting = false;
  function drawAll() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      for (const panel of panels) panel.draw();
    });
  }
  reset.addEventListener('click', () => zoom(whole.from, whole.to));
  window.addEventListener('resize', drawAll);
  window.addEventListener('beforeprint', () => panels.forEach(panel => panel.draw()));
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
  panels.forEach(panel => panel.draw());
})();
