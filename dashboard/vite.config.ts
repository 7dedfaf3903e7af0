import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  // Relative addresses: the dashboard works under any prefix.
  base: "./",
  plugins: [react()],
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
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"], environment: "node" },
});
