// @ts-check
/** What a training writes, as it writes it: events from the server, for as long as somebody sees the page. */

/** @typedef {import("./types.js").Progress} Progress */

export class Live {
  /**
   * @param {string} run
   * @param {(told: Partial<Progress>) => void} hear what is new
   * @param {(there: boolean) => void} state whether the server answers
   */
  constructor(run, hear, state) {
    this.run = run;
    this.hear = hear;
    this.state = state;
    /** @type {EventSource|null} */
    this.source = null;
    /** How far it was told. */
    this.place = "";
    this.wanted = false;
    this.turned = () => (document.hidden ? this.pause() : this.resume());
  }

  /** @param {string} place */
  open(place) {
    if (this.wanted) return;
    [this.wanted, this.place] = [true, place];
    document.addEventListener("visibilitychange", this.turned);
    this.turned();
  }

  close() {
    this.wanted = false;
    document.removeEventListener("visibilitychange", this.turned);
    this.pause();
  }

  resume() {
    if (this.source) return;
    const path = `/api/v1/runs/${encodeURIComponent(this.run)}/events?place=${encodeURIComponent(this.place)}`;
    const source = new EventSource(path);
    this.source = source;
    source.addEventListener("open", () => this.state(true));
    source.addEventListener("error", () => this.lost(source));
    source.addEventListener("progress", (event) => {
      this.place = event.lastEventId;
      this.hear(JSON.parse(event.data));
    });
  }

  /** The browser comes back by itself, with the last place it has seen; unless the server said no. @param {EventSource} source */
  lost(source) {
    this.state(false);
    if (source.readyState === EventSource.CLOSED) this.close();
  }

  pause() {
    this.source?.close();
    this.source = null;
  }
}
