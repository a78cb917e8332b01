/** TensorBoard imports this module and calls `render`: the page then has a document, and a content policy, of its own. */
export function render(): void {
  // `replace`, so that the browser's Back does not lead to a page that only leads here again.
  window.location.replace(new URL(/* @vite-ignore */ 'index.html', import.meta.url));
}
