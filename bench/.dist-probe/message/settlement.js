export {};
//# sourceMappingURL=settlement.js.map