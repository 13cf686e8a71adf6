export function createEvents() {
    const listeners = new Set();
    return {
        get heard() {
            return listeners.size > 0;
        },
        emit(event) {
            for (const listener of listeners) {
                try {
                    listener(event);
                }
                catch {
                    // A broken listener must not change what happens to a message.
                }
            }
        },
        on(listener) {
            listeners.add(listener);
            return () => listeners.delete(listener);
        },
    };
}
//# sourceMappingURL=events.js.map