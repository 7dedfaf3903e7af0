import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig(({ command }) => ({
  // Relative addresses: the dashboard works under any prefix.
  base: command === "serve" ? "/ui/" : "./",
  plugins: [react()],
  // `npm run dev` asks a running server for everything that is not the dashboard.
  server: {
    proxy: {
      "^/(?!ui(/|$))": {
        target: process.env.LANEWAY_SERVER ?? "http://127.0.0.1:8420",
        // The server accepts a browser's session only from pages of the same host.
        changeOrigin: false,
      },
    },
  },
  build: {
    outDir: "../src/laneway/api/static",
    emptyOutDir: true,
    target: "es2023",
    modulePreload: { polyfill: false },
    // Data addresses would need a wider content security policy.
    assetsInlineLimit: 0,
    license: { fileName: "licenses.md" },
    chunkSizeWarningLimit: 800,
  },
  test: {
    include: ["src/**/*.test.ts", "src/**/*.test.tsx"],
    environment: "node",
    // Tests of pure functions need no process for each file.
    pool: "threads",
    isolate: false,
  },
}));
