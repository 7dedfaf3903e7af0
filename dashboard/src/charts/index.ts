/** Charts over time. Pages import from here; the drawing library is a separate chunk. */
export { Chart, type ChartProps, type ChartSeries } from "./Chart";
export * from "./grid";
