// @ts-check
/** Scene tab: one picture of the model that was run, from which one goes down to a layer, a part, a head, a number. */
import { buttonGroup, h, replace } from "../core/dom.js";
import { formatExact, formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { backwardMoments, describeBackward, drawBackward, loadBackward } from "../scene/backward.js";
import { HeadPicture } from "../scene/head-picture.js";
import { describeMoment, moments } from "../scene/frames.js";
import { ModelGraph } from "../scene/model-graph.js";
import { ModelPicture } from "../scene/model-picture.js";
import { PartPicture } from "../scene/part-picture.js";
import { pictureButtons } from "../scene/picture-file.js";
import { colorLegend, formatPlace, parsePlace, partList, pictureLead } from "../scene/scene-parts.js";
import { TourPanel } from "../tour/panel.js";
import { Transport } from "../widgets/transport.js";
import { gradientTensors } from "./gradients.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../scene/row-values.js").PickedNumber} PickedNumber */
/**
 * What all levels have in common.
 * @typedef {{placed: {row: {title: string, form: string, zoom: string}}, column: number, picked: PickedNumber|null}} Hit
 * @typedef {{load: () => Promise<void>, draw: (width: number) => SVGElement, hit: (x: number, y: number) => Hit|null,
 *   light: (hit: any) => void, move: (from: any, up: number, right: number) => Hit|null,
 *   stack?: {tokens: unknown[]}, rows: {row: {title: string, tensor: string|null, zoom: string, layer?: string|null}}[]}} Picture
 */

/** Milliseconds per moment at speed 1, and pixels of change in width that are drawn again. */
const [TICK, RESIZE] = [600, 8];
/** View in which the gradients are played. */
const BACKWARD = "backward";
/** Space around what a stop of the tour lights. */
const MARGIN = 16;

/** @param {Context} context */
export async function sceneTab(context) {
  if (!context.trace.header.graph?.nodes.length)
    return h(
      "p",
      { class: "empty" },
      "This trace has no graph of its model, so its picture cannot be drawn: it was recorded by an earlier version. ",
      "All other tabs work; run the sentence again for the picture.",
    );
  const scene = new Scene(context);
  await scene.open();
  return scene.node;
}

class Scene {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.graph = new ModelGraph(context.trace);
    this.view = h("div", {
      class: "scene-view",
      tabindex: "0",
      role: "group",
      "aria-label": "Picture of the model. Arrow keys move, Enter opens or explains, Escape goes up.",
      onpointermove: (/** @type {PointerEvent} */ event) => this.point(event),
      onpointerleave: () => this.unpoint(),
      onclick: (/** @type {MouseEvent} */ event) => this.click(event),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.tip = h("div", { class: "scene-tip", hidden: true, "aria-hidden": "true" });
    this.readout = h("p", { class: "scene-readout muted", "aria-live": "polite" });
    this.head = h("div", {});
    this.lead = h("div", {});
    this.below = h("div", {});
    this.tour = new TourPanel(this.graph, context.selection);
    this.node = h(
      "div",
      { class: "stack scene" },
      this.head,
      this.tour.node,
      this.lead,
      this.view,
      this.readout,
      this.below,
    );
    this.request = 0;
    this.width = 0;
    /** @type {Awaited<ReturnType<typeof loadBackward>>|undefined} */
    this.gradients = undefined;
    const { selection, drawer } = context;
    context.onleave(selection.listen(["at", "head", "position", "tour", "view"], () => this.open().catch(showError)));
    context.onleave(selection.listen(["frame"], () => this.showFrame()));
    context.onleave(selection.listen(["number"], () => this.explain().catch(showError)));
    context.up = () => this.up();
    drawer.onclose = () => selection.current.number && selection.set({ number: null });
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.node);
    context.onleave(() => observer.disconnect());
  }

  /** Loads and draws the level of the address. */
  async open() {
    const request = ++this.request;
    await this.tour.load();
    const picture = this.choose();
    await picture.load();
    if (this.isBackward) this.gradients ??= await loadBackward(this.graph);
    if (request !== this.request) return;
    this.picture = picture;
    this.draw();
    await this.tour.draw();
    if (request === this.request) this.spotlight();
    await this.explain();
  }

  /** @returns {Picture} */
  choose() {
    const { at, head, position } = this.context.selection.current;
    const found = this.graph.find(at);
    const actions = {
      zoom: (/** @type {string} */ to) => this.zoom(to),
      set: this.context.selection.set.bind(this.context.selection),
    };
    if (!found?.node) return new ModelPicture(this.graph, found?.layer ?? null, actions);
    if (found.node.kind.endsWith("attention") && head !== null)
      return new HeadPicture(this.graph, found.node, head, position ?? 0, actions);
    return new PartPicture(this.graph, found.node, position ?? 0, actions);
  }

  /** Goes down to a layer or a part. @param {string} to */
  zoom(to) {
    const { selection } = this.context;
    if (selection.current.at !== to) selection.set({ at: to, head: null, frame: null, number: null });
  }

  /** Goes up a level; whether there is one. */
  up() {
    const { selection } = this.context;
    const { at, head } = selection.current;
    const found = this.graph.find(at);
    if (!found && this.tour.stop) this.tour.end();
    if (!found) return false;
    if (head !== null && found.node) selection.set({ head: null });
    else selection.set({ at: found.node && found.layer ? found.layer : null, head: null, frame: null });
    this.view.focus({ preventScroll: true });
    return true;
  }

  draw() {
    const { picture } = this;
    this.width = Math.floor(this.view.clientWidth || this.node.clientWidth);
    if (!picture || !this.width) return; // not in the document yet: drawn when its size is known
    this.cursor = null;
    this.svg = picture.draw(this.width);
    replace(this.view, this.svg, this.tip);
    this.tip.hidden = true;
    this.moments =
      picture instanceof ModelPicture && picture.layout && !this.tour.stop ? moments(this.graph, picture.layout) : [];
    this.drawHead();
    const isModel = picture instanceof ModelPicture && this.context.selection.current.at === null;
    replace(this.lead, isModel ? pictureLead(this.graph) : null, colorLegend(picture));
    this.lead.hidden = this.tour.stop !== null; // its text explains the picture
    replace(
      this.below,
      partList(
        picture,
        (to) => this.zoom(to),
        picture instanceof PartPicture ? picture.heads : 0,
        (head) => this.context.selection.set({ head }),
      ),
    );
    this.bindKeys();
    this.showFrame();
    this.spotlight();
    this.node.dataset.drawn = this.context.selection.current.at ?? "model";
  }

  /** Whether the gradients are played, not the computation. */
  get isBackward() {
    return this.context.selection.current.view === BACKWARD && this.hasBackward;
  }

  /** Whether the trace has recurrent layers and gradients. */
  get hasBackward() {
    const recurrent = [...this.graph.nodes.values()].some(({ kind }) => kind === "recurrent");
    return recurrent && gradientTensors(this.context.trace).length > 0;
  }

  /** Forward or backward, where both can be played. */
  directions() {
    const options = [
      { value: "", text: "Forward" },
      { value: BACKWARD, text: "Gradients backward" },
    ];
    return buttonGroup("Play", options, this.isBackward ? BACKWARD : "", (view) =>
      this.context.selection.set({ view: view || null, frame: view ? 0 : null }),
    );
  }

  resize() {
    const width = Math.floor(this.view.clientWidth);
    if (width && Math.abs(width - this.width) > RESIZE) this.draw();
  }

  drawHead() {
    const all = this.moments ?? [];
    delete this.context.step;
    delete this.context.play;
    const { gradients, picture } = this;
    const back =
      gradients && this.isBackward && all.length && picture instanceof ModelPicture
        ? backwardMoments(picture.rows, gradients)
        : null;
    const count = (back ?? all).length;
    const describe = (/** @type {number} */ i) =>
      i >= count
        ? back
          ? "all gradients of this loss"
          : "everything is computed"
        : back
          ? describeBackward(this.graph, back[i])
          : describeMoment(this.graph, all[i]);
    this.back = back;
    this.transport?.stop();
    this.transport = count ? new Transport(this.context, count + 1, { field: "frame", tick: TICK, describe }) : null;
    replace(
      this.head,
      h(
        "div",
        { class: "scene-bar" },
        this.crumbs(),
        this.tour.stop ? null : this.tourButton(),
        all.length && this.hasBackward ? this.directions() : null,
        this.transport?.node ?? null,
        pictureButtons(() => this.svg, this.graph.trace.header),
      ),
    );
  }

  tourButton() {
    const start = () => this.tour.start().catch(showError);
    return h("button", { type: "button", class: "primary", onclick: start }, "Take the tour");
  }

  /** Lights what the stop of the tour is about, and brings it into view. */
  spotlight() {
    const { stop } = this.tour;
    if (!(this.picture instanceof ModelPicture)) return;
    this.picture.spotlight(stop ? stop.lit : [], stop?.column ?? null);
    if (stop) reveal(this.picture.spot.querySelector(".scene-framed"), this.tour.node);
  }

  /** Keys for layers, heads and, where nothing is played, tokens. */
  bindKeys() {
    const { context, picture } = this;
    const { selection } = context;
    const found = this.graph.find(selection.current.at);
    const layers = this.graph.stacks.flatMap((stack) => this.graph.layers(stack));
    context.layer = (by) => {
      const next = layers[(found?.layer ? layers.indexOf(found.layer) : by > 0 ? -1 : layers.length) + by];
      if (next) this.zoom(next);
    };
    const heads = picture instanceof PartPicture || picture instanceof HeadPicture ? picture.heads : 0;
    context.head = (by) => {
      const next = (selection.current.head ?? (by > 0 ? -1 : heads)) + by;
      if (next >= 0 && next < heads) selection.set({ head: next });
    };
    if (this.tour.stop) context.step = (by) => this.tour.move(by);
    if (picture instanceof ModelPicture || this.tour.stop) return;
    const last = (picture?.stack?.tokens.length ?? 1) - 1;
    context.step = (by) => {
      const next = (selection.current.position ?? 0) + by;
      if (next >= 0 && next <= last) selection.set({ position: next });
    };
  }

  /** The levels above. */
  crumbs() {
    const { selection } = this.context;
    const { at, head } = selection.current;
    const found = this.graph.find(at);
    /** @type {[string, Parameters<typeof selection.set>[0]][]} */
    const levels = [["Model", { at: null, head: null, frame: null, number: null }]];
    if (found?.layer)
      levels.push([this.layerName(found.layer), { at: found.layer, head: null, frame: null, number: null }]);
    if (found?.node) levels.push([found.node.title, { at: found.node.id, head: null, number: null }]);
    if (found?.node && head !== null && this.picture instanceof HeadPicture) levels.push([`Head ${head}`, {}]);
    const items = levels.map(([text, to], i) =>
      i === levels.length - 1
        ? h("li", { "aria-current": "page" }, text)
        : h("li", {}, h("button", { type: "button", onclick: () => selection.set(to) }, text)),
    );
    return h("nav", { "aria-label": "Levels" }, h("ol", { class: "levels" }, ...items));
  }

  /** @param {string} layer */
  layerName(layer) {
    const stack = this.graph.stacks.find(({ nodes }) => nodes.some((node) => node.layer === layer));
    const title = this.graph.layerTitle(layer);
    return stack?.title ? `${stack.title}, ${title.toLowerCase()}` : title;
  }

  showFrame() {
    const { frame } = this.context.selection.current;
    if (!(this.picture instanceof ModelPicture) || !this.moments) return;
    this.picture.showMoment(this.moments, this.back ? null : frame);
    if (this.back) drawBackward(this.picture.veil, this.back, frame);
  }

  /** Opens the number of the address. */
  async explain() {
    const { selection, drawer, trace } = this.context;
    const { number } = selection.current;
    if (!number) return void drawer.close();
    const place = parsePlace(number, trace);
    if (!place) return;
    if (place.mean) await drawer.openMean(place.name, place.index);
    else await drawer.open(place.name, place.index);
  }

  /** @param {PickedNumber} picked */
  showNumber(picked) {
    this.context.selection.set({ number: formatPlace(picked, this.context.trace) });
  }

  /** @param {MouseEvent} event */
  hitAt(event) {
    const box = this.svg?.getBoundingClientRect();
    return box && this.picture ? this.picture.hit(event.clientX - box.left, event.clientY - box.top) : null;
  }

  /** @param {PointerEvent} event */
  point(event) {
    const hit = this.hitAt(event);
    this.picture?.light(hit);
    this.show(hit ? hit.placed.row.title : "", hit?.picked ?? null);
    if (!hit?.picked) return void (this.tip.hidden = true);
    const box = this.view.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left + this.view.scrollLeft, event.clientY - box.top + this.view.scrollTop];
    replace(this.tip, h("b", {}, `${formatNumber(hit.picked.value)}`), `${hit.placed.row.title}, ${hit.picked.place}`);
    this.tip.hidden = false;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, this.view.scrollLeft + box.width - 284))}px`;
    this.tip.style.top = `${y + 18}px`;
  }

  unpoint() {
    this.tip.hidden = true;
    this.picture?.light(null);
  }

  /** Describes a number below the picture. @param {string} title @param {PickedNumber|null} picked */
  show(title, picked) {
    const { readout } = this;
    readout.textContent = picked ? `${title}, ${picked.place}: ${formatNumber(picked.value)}` : title;
    if (picked)
      Object.assign(readout.dataset, {
        exact: formatExact(picked.value),
        number: formatPlace(picked, this.context.trace),
      });
    else delete readout.dataset.exact;
  }

  /** @param {MouseEvent} event */
  click(event) {
    if (
      event.defaultPrevented ||
      (event.target instanceof Element && event.target.closest(".scene-title, .scene-layer, .scene-link"))
    )
      return;
    const hit = this.hitAt(event);
    if (!hit) return;
    if (hit.placed.row.form === "band") this.zoom(hit.placed.row.zoom);
    else if (hit.picked) this.showNumber(hit.picked);
    else if (hit.placed.row.form !== "tokens") this.zoom(hit.placed.row.zoom);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { picture } = this;
    if (!picture || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (by) {
      this.cursor = picture.move(this.cursor ?? null, by[0], by[1]);
      picture.light(this.cursor);
      if (this.cursor) this.show(this.cursor.placed.row.title, this.cursor.picked);
    } else if (event.key === "Enter" && this.cursor) {
      const { row } = this.cursor.placed;
      if (picture instanceof ModelPicture) this.zoom(row.zoom);
      else if (this.cursor.picked) this.showNumber(this.cursor.picked);
      else this.zoom(row.zoom);
    } else return;
    event.preventDefault();
  }
}

/** Scrolls the page so that what is lit can be seen below the panel. @param {Element|null} lit @param {Element} panel */
function reveal(lit, panel) {
  const [box, above] = [lit?.getBoundingClientRect(), panel.getBoundingClientRect()];
  if (!box?.height || !above.height) return;
  const [top, bottom] = [above.bottom + MARGIN, window.innerHeight - MARGIN];
  const by = box.top < top || box.height > bottom - top ? box.top - top : Math.max(0, box.bottom - bottom);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (Math.abs(by) > 1) window.scrollBy({ top: by, behavior: still ? "auto" : "smooth" });
}
