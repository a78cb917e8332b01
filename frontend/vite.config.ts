import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';
import { speedscope } from './scripts/speedscope.mjs';
import { contentPolicy, mockApi } from './tests/mock_api.ts';

/** `STEPSCOPE_URL=http://127.0.0.1:6007 npm run dev` works against a running `stepscope serve`. */
const backend = process.env.STEPSCOPE_URL;

export default defineConfig({
  base: './',
  plugins: [react(), speedscope(), contentPolicy(), ...(backend ? [] : [mockApi()])],
  build: {
    outDir: '../plugin/stepscope/static',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    manifest: 'manifest.json',
    target: 'es2022',
    chunkSizeWarningLimit: 700,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      input: { app: 'index.html', index: 'src/tb_entry.ts' },
      // TensorBoard imports `render` from the entry by name, so what an entry exports must stay.
      preserveEntrySignatures: 'exports-only',
      output: {
        entryFileNames: (chunk) =>
          chunk.name === 'index' ? 'index.js' : 'assets/[name]-[hash].js',
      },
    },
  },
  server: backend ? { proxy: { '/api': backend } } : {},
  test: {
    environment: 'happy-dom',
    include: ['src/**/*.test.{ts,tsx}', 'tests/**/*.test.{ts,tsx}'],
    setupFiles: ['tests/setup.ts'],
    restoreMocks: true,
    // Files share a document and modules, which costs a third of the time: tests/setup.ts tidies up.
    isolate: false,
    // Longer than what a test waits for: see tests/setup.ts.
    testTimeout: 120_000,
  },
});
