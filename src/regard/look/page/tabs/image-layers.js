// @ts-check
/** Layers of a convolutional network: filters of the first, feature maps of any, statistics of batch normalization. */
import { h, replace, selectField, symbolButton } from "../core/dom.js";
import { formatNumber } from "../core/format.js";
import { showError } from "../core/notice.js";
import { splitName } from "../trace/names.js";
import { legend } from "../widgets/matrix.js";
import { figure, largest, numberPicture, picture } from "../widgets/picture.js";
import { table, tableRow } from "../widgets/table.js";
import { numberRow, scrollRow } from "./image-clip.js";

/** @typedef {import("../core/types.js").Context} Context */
/** @typedef {import("../core/types.js").Description} Description */
/** @typedef {import("../trace/trace.js").Trace} Trace */

/** Filters and feature maps that are drawn at once, of an image and of a clip, and their widths. */
const [MOST, MOST_OF_CLIP, FILTER_WIDTH, MAP_WIDTH] = [32, 4, 48, 72];
const STATISTICS = ["running_mean", "batch_mean", "running_variance", "batch_variance"];

/** Filters of the first layer. @param {Trace} trace */
export async function filtersCard(trace) {
  const description = trace.header.tensors.find(({ name }) => splitName(name)[1] === "filters");
  if (!description) return null;
  const [count, channels, rows, columns] = description.shape;
  const filters = await trace.tensor(description.name, count > 2 * MOST ? `filter:0-${2 * MOST - 1}` : "");
  const top = largest(filters.data);
  const size = channels * rows * columns;
  const tiles = Array.from({ length: filters.size("filter") }, (_, i) => {
    const weights = filters.data.subarray(i * size, (i + 1) * size);
    const label = `filter ${i}`;
    if (channels !== 3) {
      const canvas = numberPicture(weights, channels * rows, columns, top, "signed", FILTER_WIDTH, label);
      return figure(canvas, String(i));
    }
    const data = new Float64Array(size);
    for (let c = 0; c < 3; c++) {
      for (let k = 0; k < rows * columns; k++)
        data[3 * k + c] = 127.5 + (127.5 * weights[c * rows * columns + k]) / top;
    }
    return figure(picture({ width: columns, height: rows, data }, FILTER_WIDTH, label), String(i));
  });
  const shown = tiles.length < count ? `, ${tiles.length} are drawn` : "";
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "Filters of the first layer"),
    h("p", { class: "muted" }, h("code", {}, description.name), ` ${count} filters of ${rows} × ${columns}${shown}`),
    h("div", { class: "tiles" }, ...tiles),
    channels === 3
      ? h(
          "p",
          { class: "muted" },
          `Gray is 0, black −${formatNumber(top)}, white +${formatNumber(top)} in all channels.`,
        )
      : legend({ ramp: "signed", top, numbers: filters.data }),
  );
}

/** Feature maps of any layer. @param {Context} context */
export async function mapsCard(context) {
  const { trace, selection } = context;
  const all = trace.header.tensors.filter(
    ({ name, axes }) => /^(frame,)?channel,row,column$/u.test(axes.join()) && splitName(name)[1] !== "image",
  );
  if (!all.length) return null;
  const first = all.find(({ name }) => name.endsWith("feature_map")) ?? all[0];
  const card = new Maps(context, all, first);
  await card.draw();
  context.onleave(selection.listen(["tensor"], () => card.draw().catch(showError)));
  return card.node;
}

class Maps {
  /** @param {Context} context @param {Description[]} all @param {Description} first */
  constructor(context, all, first) {
    this.context = context;
    this.all = all;
    this.default = first;
    this.first = 0;
    this.request = 0;
    this.node = h("section", { class: "card maps" });
  }

  /** The chosen tensor. */
  get chosen() {
    return this.all.find(({ name }) => name === this.context.selection.current.tensor) ?? this.default;
  }

  /** @param {string} name */
  choose(name) {
    this.first = 0;
    this.context.selection.set({ tensor: name });
  }

  /** @param {number} by */
  page(by) {
    this.first += by;
    this.draw().catch(showError);
  }

  async draw() {
    const request = ++this.request;
    const { name, axes, shape } = this.chosen;
    const [count, rows, columns] = shape.slice(-3);
    const most = axes[0] === "frame" ? MOST_OF_CLIP : MOST;
    const last = Math.min(count, this.first + most) - 1;
    const maps = await this.context.trace.tensor(name, `channel:${this.first}-${last}`);
    if (request !== this.request) return;
    const { min, max } = this.chosen;
    const [ramp, top] = [/** @type {"signed"|"weight"} */ (min < 0 ? "signed" : "weight"), Math.max(-min, max)];
    const channels = Array.from({ length: maps.size("channel") }, (_, i) => i);
    const frames = Array.from({ length: maps.size("frame") }, (_, i) => i);
    const tiles = channels.map((channel) => {
      const number = this.first + channel;
      if (axes[0] === "frame") {
        const planes = frames.map((frame) => maps.plane("row", "column", { channel, frame }));
        return numberRow(planes, rows, columns, top, ramp, (i) => `map ${number}, frame ${i + 1}`);
      }
      const numbers = maps.plane("row", "column", { channel });
      const canvas = numberPicture(numbers, rows, columns, top, ramp, MAP_WIDTH, `map ${number}`);
      return figure(canvas, String(number));
    });
    const options = this.all.map((tensor) => ({ value: tensor.name, text: tensor.name }));
    replace(
      this.node,
      h("h2", {}, "Feature maps"),
      h(
        "div",
        { class: "row wrap" },
        selectField("Layer", options, name, (value) => this.choose(value)),
        symbolButton("‹", "Earlier maps", () => this.page(-most), this.first === 0),
        h("span", { class: "muted" }, `maps ${this.first} to ${last} of ${count}, ${rows} × ${columns}`),
        symbolButton("›", "Later maps", () => this.page(most), last === count - 1),
      ),
      axes[0] === "frame" ? scrollRow("Feature maps of each frame", tiles) : h("div", { class: "tiles" }, ...tiles),
      legend({ ramp, top, numbers: maps.data }),
    );
  }
}

/** Statistics of batch normalization. @param {Context} context */
export async function normCard({ trace }) {
  const names = trace.header.tensors.map(({ name }) => splitName(name));
  const layers = names
    .filter(([base, kind]) => kind === "running_mean" && STATISTICS.every((name) => trace.has(`${base}.${name}`)))
    .map(([base]) => base);
  if (!layers.length) return null;
  const body = h("div", {});
  const card = h("section", { class: "card norm-card" });
  const draw = async (/** @type {string} */ layer) => {
    const columns = await Promise.all(STATISTICS.map((kind) => trace.tensor(`${layer}.${kind}`)));
    const rows = Array.from(columns[0].data, (_, i) =>
      tableRow(
        String(i),
        columns.map(({ data }) => formatNumber(data[i])),
      ),
    );
    const here = trace.describe("pixels").axes[0] === "frame" ? "these frames" : "this image";
    const heads = ["channel", "running mean", `mean of ${here}`, "running variance", `variance of ${here}`];
    const options = layers.map((name) => ({ value: name, text: name }));
    const onchange = (/** @type {string} */ value) => draw(value).catch(showError);
    replace(body, table(`Statistics of ${layer}`, heads, rows));
    replace(
      card,
      h("h2", {}, "Batch normalization"),
      selectField("Normalization", options, layer, onchange),
      h("p", { class: "muted" }, "The running statistics, from training, are those that the model normalizes by."),
      body,
    );
  };
  await draw(layers[0]);
  return card;
}
