export {};
//# sourceMappingURL=topics.js.map