// Browsers start no worker from a file: page. There, a hidden frame of the same page does the search's work instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.src = "about:blank"
      document.documentElement.append(frame)
      const inside = frame.contentWindow
      inside.postMessage = data => {
        const event = new MessageEvent("message", { data })
        this.dispatchEvent(event)
        if (this.onmessage) this.onmessage(event)
      }
      // What a worker may load while it runs. Scripts load in order, so the next one waits for these.
      inside.importScripts = (...urls) => Promise.all(urls.map(u => load(u)))
      const load = src => new Promise((resolve, reject) => {
        const script = inside.document.createElement("script")
        script.src = new URL(src, location.href)
        script.async = false
        script.onload = resolve
        script.onerror = reject
        inside.document.body.append(script)
      })
      const deliver = data => inside.dispatchEvent(new MessageEvent("message", { data }))
      this.postMessage = data => waiting.push(data)
      load(url).then(() => {
        this.postMessage = deliver
        waiting.forEach(deliver)
      })
    }
    terminate() {}
  }
}
