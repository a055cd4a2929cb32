"use strict";
// Draws the gallery. All text from the data goes through `textContent`.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const slider = find("threshold");
  const gallery = find("gallery");

  /** The recorded threshold of an image until the slider is moved, then the slider's. */
  let live = null;
  /** Of many images, only some of each kind are shown until all are asked for. */
  const FEW = { worst: 2, median: 2, best: 2, unscored: 2 };
  let all = data.items.length <= 8;

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const number = (value) => (value === null ? "-" : value.toFixed(2));

  /** The pixels of an embedded picture, four bytes each. */
  const pixels = async (source) => {
    const picture = new Image();
    picture.src = source;
    await picture.decode();
    const [width, height] = [picture.naturalWidth, picture.naturalHeight];
    const canvas = make("canvas", { width, height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(picture, 0, 0);
    return context.getImageData(0, 0, width, height);
  };

  /** One channel of some pixels. */
  const plane = (image) => {
    const values = new Uint8Array(image.width * image.height);
    for (let i = 0; i < values.length; i += 1) values[i] = image.data[4 * i];
    return values;
  };

  /** Fills a canvas: `colour(i)` is laid over `base(i)`, or nothing if it is null. */
  const paint = (canvas, image, base, colour, alpha = 0.5) => {
    canvas.width = image.width;
    canvas.height = image.height;
    const context = canvas.getContext("2d");
    const drawn = context.createImageData(image.width, image.height);
    for (let i = 0; i < image.width * image.height; i += 1) {
      const below = base(i);
      const above = colour(i);
      for (let c = 0; c < 3; c += 1) {
        drawn.data[4 * i + c] =
          above === null ? below[c] : Math.round(below[c] * (1 - alpha) + above[c] * alpha);
      }
      drawn.data[4 * i + 3] = 255;
    }
    context.putImageData(drawn, 0, 0);
  };

  class Card {
    constructor(item) {
      this.item = item;
      this.mask = make("canvas");
      this.heat = make("canvas");
      this.truth = item.truth ? make("canvas") : make("div", { className: "missing" }, "no truth");
      this.picture = make("img", { src: item.image, alt: `Image ${item.id}`, loading: "lazy" });
      const described = [
        [this.truth, "truth", `True mask of ${item.id}`],
        [this.mask, "mask", `Mask of ${item.id} at the threshold`],
        [this.heat, "heat map", `Score map of ${item.id}`],
      ];
      const panels = make("div", { className: "panels" }, this.panel(this.picture, "image"));
      for (const [element, caption, label] of described) {
        element.setAttribute("role", "img");
        element.setAttribute("aria-label", label);
        panels.append(this.panel(element, caption));
      }
      this.element = make("article", { className: "card" },
        this.title(), this.facts(), panels);
    }

    /** The image's name, which may be broken where its parts end. */
    title() {
      const parts = this.item.id.split(/(?<=[/_-])/);
      return make("h3", {}, ...parts.flatMap((part) => [part, make("wbr")]));
    }

    panel(element, caption) {
      return make("figure", {}, element, make("figcaption", {}, caption));
    }

    facts() {
      const { item } = this;
      const line = make("p", {}, data.classes[item.label]);
      if (item.predicted !== null) {
        const right = item.predicted === item.label;
        const share = item.probability === null ? "" : ` (${(100 * item.probability).toFixed(0)} %)`;
        line.append(" · ", make("span", { className: right ? "correct" : "wrong" },
          right ? "correct" : "wrong"), `: ${data.classes[item.predicted]}${share}`);
      }
      line.append(` · F1⁺\u00a0${number(item.f1_foreground)} · F1⁻\u00a0${number(item.f1_background)}`);
      if (item.threshold !== null) line.append(` · threshold\u00a0${item.threshold.toFixed(3)}`);
      line.append(` · ${item.standing}`);
      return line;
    }

    /** Decodes the pictures once they are seen. */
    async load() {
      const { item } = this;
      if (this.loading) return this.loading;
      this.loading = this.decode(item);
      return this.loading;
    }

    async decode(item) {
      this.image = await pixels(item.image);
      this.map = plane(await pixels(item.map));
      this.marks = item.truth ? plane(await pixels(item.truth)) : null;
      const colours = this.image.data;
      const base = (i) => [colours[4 * i], colours[4 * i + 1], colours[4 * i + 2]];
      paint(this.heat, this.image, (i) => this.grey(i), (i) => data.colours.heat[this.map[i]], 0.65);
      if (this.marks) {
        const { truth } = data.colours;
        paint(this.truth, this.image, base, (i) => (this.marks[i] === 255 ? truth : null));
      }
      this.recolour();
    }

    grey(i) {
      const colours = this.image.data;
      const level = 0.2126 * colours[4 * i] + 0.7152 * colours[4 * i + 1] + 0.0722 * colours[4 * i + 2];
      return [level, level, level];
    }

    /** Draws the mask at the current threshold. */
    recolour() {
      if (!this.map) return;
      const cut = 255 * (live === null ? this.item.threshold ?? 0.5 : live);
      const { hit, alarm, miss, mask } = data.colours;
      paint(this.mask, this.image, (i) => this.grey(i), (i) => {
        const marked = this.map[i] >= cut;
        if (!this.marks) return marked ? mask : null;
        if (this.marks[i] === 128) return null;
        if (this.marks[i] === 255) return marked ? hit : miss;
        return marked ? alarm : null;
      });
    }

    matches(label, outcome) {
      const { item } = this;
      const right = item.predicted === item.label ? "correct" : "wrong";
      return (label === "" || item.label === Number(label)) && (outcome === "" || outcome === right);
    }
  }

  const cards = data.items.map((item) => new Card(item));
  const few = new Set();
  for (const [standing, count] of Object.entries(FEW)) {
    const alike = cards.filter((card) => card.item.standing === standing);
    // From both ends: the very worst and the very best.
    (standing === "best" ? alike.slice(-count) : alike.slice(0, count)).forEach((c) => few.add(c));
  }

  const filter = () => {
    let shown = 0;
    for (const card of cards) {
      const matches = card.matches(find("class").value, find("outcome").value);
      card.element.hidden = !matches || !(all || few.has(card));
      shown += card.element.hidden ? 0 : 1;
    }
    find("count").textContent = `${shown} of ${cards.length} shown`;
    find("more").hidden = all;
    recolour();
    return draw();
  };

  /** Draws what is shown and not drawn yet. */
  const draw = () => {
    delete gallery.dataset.state;
    return Promise.all(cards.filter((card) => !card.element.hidden).map((card) => card.load())).then(
      () => { gallery.dataset.state = "drawn"; },
      (error) => { find("count").textContent = `The images cannot be drawn: ${error.message}`; },
    );
  };

  const arrange = () => {
    const order = find("order").value;
    const sorted = [...cards];
    if (order === "best") sorted.reverse();
    if (order === "name") sorted.sort((a, b) => (a.item.id < b.item.id ? -1 : 1));
    gallery.replaceChildren(...sorted.map((card) => card.element));
  };

  const recolour = () => cards.filter((card) => !card.element.hidden).forEach((c) => c.recolour());

  const tell = () => {
    const threshold = Number(slider.value);
    find("threshold-value").textContent =
      live === null && data.threshold === null ? "own" : threshold.toFixed(3);
    const at = Math.round(1000 * threshold);
    const scores = [data.sweep.f1_foreground[at], data.sweep.f1_background[at]];
    find("at-threshold").textContent =
      live === null && data.threshold === null
        ? "Each image is cut at its own threshold; move the slider to cut all at the same one"
        : `All ${data.scored} images with masks cut at ${threshold.toFixed(3)}: ` +
          `F1⁺\u00a0${number(scores[0])}, F1⁻\u00a0${number(scores[1])}`;
  };

  let asked = false;
  slider.addEventListener("input", () => {
    live = Number(slider.value);
    tell();
    if (asked) return;
    asked = true;
    // Once for all the events that have come by then.
    setTimeout(() => {
      asked = false;
      recolour();
    });
  });
  find("reset").addEventListener("click", () => {
    live = null;
    slider.value = data.threshold ?? 0.5;
    tell();
    recolour();
  });
  const showAll = () => {
    all = true;
    return filter();
  };
  find("class").addEventListener("change", showAll);
  find("outcome").addEventListener("change", showAll);
  find("more").addEventListener("click", showAll);
  find("more").textContent = `Show all ${cards.length} images`;
  find("order").addEventListener("change", arrange);
  find("controls").addEventListener("submit", (event) => event.preventDefault());

  const classes = find("class");
  classes.append(make("option", { value: "" }, "all classes"));
  data.classes.forEach((name, label) => {
    const count = cards.filter((card) => card.item.label === label).length;
    if (count > 0) classes.append(make("option", { value: String(label) }, `${name} (${count})`));
  });
  find("outcome-label").hidden = cards.every((card) => card.item.predicted === null);
  slider.value = data.threshold ?? 0.5;
  tell();
  arrange();
  filter();
})();
