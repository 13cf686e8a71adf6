export {};
//# sourceMappingURL=topic.js.map