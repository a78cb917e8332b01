import type { Plugin } from 'vite';

/** Copies speedscope into the built page. */
export function speedscope(): Plugin;
