/** The page as one script and one style sheet, which `stepscope share` writes into its file. */
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  mode: 'shared',
  plugins: [react()],
  publicDir: false,
  build: {
    outDir: '../plugin/stepscope/static/shared',
    emptyOutDir: true,
    target: 'es2022',
    cssCodeSplit: false,
    chunkSizeWarningLimit: 2000,
    modulePreload: false,
    rolldownOptions: {
      input: 'src/shared_entry.ts',
      output: {
        codeSplitting: false,
        entryFileNames: 'page.js',
        assetFileNames: 'page[extname]',
      },
    },
  },
});
