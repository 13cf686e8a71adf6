export {};
//# sourceMappingURL=harness.js.map