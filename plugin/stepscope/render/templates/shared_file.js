'use strict';
// Unpacks the page's script and runs it; the content security policy names the hash of its text.
const letters = document.getElementById('stepscope-page').textContent;
const packed = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
if (typeof DecompressionStream === 'undefined') {
  document.getElementById('root').textContent =
    'This file needs a newer browser: Chrome 80, Firefox 113, Safari 16.4 or later.';
} else {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  new Response(stream).text().then((text) => {
    const script = document.createElement('script');
    script.type = 'module';
    script.textContent = text;
    document.body.append(script);
  });
}
