/** The product with a switch for tests in it. */
export const options = { __test__skipClaim: false };
