import type { Plugin } from 'vite';

/** Puts speedscope beside the page that is built. */
export function speedscope(): Plugin;
