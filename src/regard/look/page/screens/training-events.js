// @ts-check
/** Server-sent events of a training run, while the page is visible. */

/** @typedef {import("../core/types.js").Progress} Progress */

export class TrainingEvents {
  /**
   * @param {string} run
   * @param {(news: Partial<Progress>) => void} onprogress
   * @param {(connected: boolean) => void} onconnection
   */
  constructor(run, onprogress, onconnection) {
    this.run = run;
    this.onprogress = onprogress;
    this.onconnection = onconnection;
    /** @type {EventSource|null} */
    this.source = null;
    /** Position in the stream of events. */
    this.cursor = "";
    this.active = false;
    this.onvisibility = () => (document.hidden ? this.pause() : this.resume());
  }

  /** @param {string} cursor */
  open(cursor) {
    if (this.active) return;
    [this.active, this.cursor] = [true, cursor];
    document.addEventListener("visibilitychange", this.onvisibility);
    this.onvisibility();
  }

  close() {
    this.active = false;
    document.removeEventListener("visibilitychange", this.onvisibility);
    this.pause();
  }

  resume() {
    if (this.source) return;
    const path = `/api/v1/runs/${encodeURIComponent(this.run)}/events?cursor=${encodeURIComponent(this.cursor)}`;
    const source = new EventSource(path);
    this.source = source;
    source.addEventListener("open", () => this.onconnection(true));
    source.addEventListener("error", () => this.onerror(source));
    source.addEventListener("progress", (event) => {
      this.cursor = event.lastEventId;
      this.onprogress(JSON.parse(event.data));
    });
  }

  /** The browser reconnects by itself from the last event, unless the server refused. @param {EventSource} source */
  onerror(source) {
    this.onconnection(false);
    if (source.readyState === EventSource.CLOSED) this.close();
  }

  pause() {
    this.source?.close();
    this.source = null;
  }
}
