/** Charts over time. Pages import from here; the drawing library is a chunk of its own. */
export { Chart, type ChartProps, type ChartSeries } from "./Chart";
export * from "./grid";
