export {};
//# sourceMappingURL=kernel.js.map