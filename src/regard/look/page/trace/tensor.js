// @ts-check
/** Tensors with named axes, so that viewers depend on axes and not on models. */

/** @typedef {import("../core/types.js").Index} Index */

export class Tensor {
  /** @param {string[]} axes @param {number[]} shape @param {Float32Array|Int32Array|Float64Array} data */
  constructor(axes, shape, data) {
    this.axes = axes;
    this.shape = shape;
    this.data = data;
    /** @type {number[]} */
    this.strides = [];
    let stride = 1;
    for (let i = shape.length - 1; i >= 0; i--) {
      this.strides[i] = stride;
      stride *= shape[i];
    }
  }

  /** Size of an axis; 1 if there is no such axis. @param {string} axis */
  size(axis) {
    const i = this.axes.indexOf(axis);
    return i < 0 ? 1 : this.shape[i];
  }

  /** @param {Index} index axes left out are at 0 */
  at(index) {
    let offset = 0;
    for (let i = 0; i < this.axes.length; i++) offset += (index[this.axes[i]] ?? 0) * this.strides[i];
    return this.data[offset];
  }

  /**
   * Values along one axis, all others fixed.
   * @param {string} axis @param {Index} index
   */
  vector(axis, index) {
    const [start, stride] = [this.offset(index, [axis]), this.stride(axis)];
    const values = new Float64Array(this.size(axis));
    for (let i = 0; i < values.length; i++) values[i] = this.data[start + i * stride];
    return values;
  }

  /** Stride of an axis. @param {string} axis */
  stride(axis) {
    const i = this.axes.indexOf(axis);
    return i < 0 ? 0 : this.strides[i];
  }

  /** @param {Index} index @param {string[]} free axes that stay at 0 */
  offset(index, free) {
    return this.axes.reduce(
      (sum, axis, i) => sum + (free.includes(axis) ? 0 : (index[axis] ?? 0) * this.strides[i]),
      0,
    );
  }

  /**
   * Values along two axes, row by row, all others fixed; a missing axis has size 1.
   * @param {string} rows @param {string} columns @param {Index} index
   */
  plane(rows, columns, index) {
    const [m, n] = [this.size(rows), this.size(columns)];
    const [start, down, right] = [this.offset(index, [rows, columns]), this.stride(rows), this.stride(columns)];
    const values = new Float64Array(m * n);
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) values[i * n + j] = this.data[start + i * down + j * right];
    }
    return values;
  }

  /** Mean over an axis, such as all heads. @param {string} axis */
  mean(axis) {
    const at = this.axes.indexOf(axis);
    if (at < 0) return this;
    const axes = this.axes.filter((_, i) => i !== at);
    const shape = this.shape.filter((_, i) => i !== at);
    const inner = this.strides[at];
    const size = this.shape[at];
    const data = new Float64Array(shape.reduce((a, b) => a * b, 1));
    for (let i = 0; i < data.length; i++) {
      const start = Math.floor(i / inner) * inner * size + (i % inner);
      let sum = 0;
      for (let k = 0; k < size; k++) sum += this.data[start + k * inner];
      data[i] = sum / size;
    }
    return new Tensor(axes, shape, data);
  }

  /**
   * Slice by axis names: "head:2,query:0-9" selects one head, which removes the axis, and ten queries.
   * @param {string} slice @returns {Tensor}
   */
  slice(slice) {
    if (!slice) return this;
    /** @type {Map<string, [number, number, boolean]>} */
    const ranges = new Map();
    for (const part of slice.split(",")) {
      const [axis, range] = part.split(":");
      const [first, last] = range.split("-");
      ranges.set(axis, [Number(first), Number(last ?? first), last !== undefined]);
    }
    /** @type {[number, number, boolean][]} */
    const bounds = this.axes.map((axis, i) => ranges.get(axis) ?? [0, this.shape[i] - 1, true]);
    const sizes = bounds.map(([first, last]) => last - first + 1);
    const Numbers = /** @type {Float32ArrayConstructor} */ (this.data.constructor);
    const data = new Numbers(sizes.reduce((a, b) => a * b, 1));
    for (let i = 0; i < data.length; i++) {
      let [rest, offset] = [i, 0];
      for (let axis = sizes.length - 1; axis >= 0; axis--) {
        offset += (bounds[axis][0] + (rest % sizes[axis])) * this.strides[axis];
        rest = Math.floor(rest / sizes[axis]);
      }
      data[i] = this.data[offset];
    }
    const keep = (/** @type {number[]|string[]} */ of) => of.filter((_, i) => bounds[i][2]);
    return new Tensor(/** @type {string[]} */ (keep(this.axes)), /** @type {number[]} */ (keep(sizes)), data);
  }
}
