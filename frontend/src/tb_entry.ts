/**
 * TensorBoard imports this module and calls `render`, which opens the page as a document with its
 * own content policy.
 */
export function render(): void {
  // `replace`: Back does not return to a page that only redirects here.
  window.location.replace(new URL(/* @vite-ignore */ 'index.html', import.meta.url));
}
