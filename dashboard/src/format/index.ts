/** Values as people read them. Pure functions. */
export * from "./duration";
export * from "./id";
export * from "./number";
export * from "./time";
