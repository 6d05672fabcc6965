// Search from a disk: a browser runs no worker for a page that was opened as a file. A hidden frame takes its place.
(() => {
  if (location.protocol !== "file:") return;
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      this.inside = new Promise((resolve) => {
        frame.addEventListener("load", () => {
          const own = frame.contentWindow;
          own.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = own.document.createElement("script");
          script.src = url;
          script.addEventListener("load", () => resolve(own));
          own.document.body.append(script);
        });
      });
      document.body.append(frame);
    }
    postMessage(data) {
      this.inside.then((own) => own.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
  window.Worker = window.IFrameWorker;
})();
