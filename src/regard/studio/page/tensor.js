// @ts-check
/** Numbers with named axes. A viewer asks a tensor for its axes, never for its model. */

/** @typedef {import("./types.js").Place} Place */

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

  /** How many places an axis has; 1 if there is no such axis. @param {string} axis */
  size(axis) {
    const i = this.axes.indexOf(axis);
    return i < 0 ? 1 : this.shape[i];
  }

  /** @param {Place} place an axis that is not named is at 0 */
  at(place) {
    let offset = 0;
    for (let i = 0; i < this.axes.length; i++) offset += (place[this.axes[i]] ?? 0) * this.strides[i];
    return this.data[offset];
  }

  /**
   * The numbers along one axis, all others held.
   * @param {string} axis @param {Place} place
   */
  along(axis, place) {
    const [start, stride] = [this.offset(place, [axis]), this.stride(axis)];
    const found = new Float64Array(this.size(axis));
    for (let i = 0; i < found.length; i++) found[i] = this.data[start + i * stride];
    return found;
  }

  /** How far two neighbours on an axis are apart. @param {string} axis */
  stride(axis) {
    const i = this.axes.indexOf(axis);
    return i < 0 ? 0 : this.strides[i];
  }

  /** @param {Place} place @param {string[]} free axes that stay at 0 */
  offset(place, free) {
    return this.axes.reduce(
      (sum, axis, i) => sum + (free.includes(axis) ? 0 : (place[axis] ?? 0) * this.strides[i]),
      0,
    );
  }

  /**
   * A table of two axes, all others held; an axis that is not there has one place.
   * @param {string} rows @param {string} columns @param {Place} place
   */
  plane(rows, columns, place) {
    const [m, n] = [this.size(rows), this.size(columns)];
    const [start, down, right] = [this.offset(place, [rows, columns]), this.stride(rows), this.stride(columns)];
    const found = new Float64Array(m * n);
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) found[i * n + j] = this.data[start + i * down + j * right];
    }
    return found;
  }

  /** The mean over an axis, such as all heads. @param {string} axis */
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
   * A part by the names of its axes: "head:2,query:0-9" is one head, which takes the axis away, and ten queries.
   * @param {string} slice @returns {Tensor}
   */
  cut(slice) {
    if (!slice) return this;
    /** @type {Map<string, [number, number, boolean]>} */
    const asked = new Map();
    for (const part of slice.split(",")) {
      const [axis, places] = part.split(":");
      const [first, last] = places.split("-");
      asked.set(axis, [Number(first), Number(last ?? first), last !== undefined]);
    }
    /** @type {[number, number, boolean][]} */
    const ranges = this.axes.map((axis, i) => asked.get(axis) ?? [0, this.shape[i] - 1, true]);
    const sizes = ranges.map(([first, last]) => last - first + 1);
    const Numbers = /** @type {Float32ArrayConstructor} */ (this.data.constructor);
    const data = new Numbers(sizes.reduce((a, b) => a * b, 1));
    for (let i = 0; i < data.length; i++) {
      let [rest, offset] = [i, 0];
      for (let axis = sizes.length - 1; axis >= 0; axis--) {
        offset += (ranges[axis][0] + (rest % sizes[axis])) * this.strides[axis];
        rest = Math.floor(rest / sizes[axis]);
      }
      data[i] = this.data[offset];
    }
    const kept = (/** @type {number[]|string[]} */ of) => of.filter((_, i) => ranges[i][2]);
    return new Tensor(/** @type {string[]} */ (kept(this.axes)), /** @type {number[]} */ (kept(sizes)), data);
  }
}
