// The little statistics a run needs: medians, quantiles, and how numbers are written.

export function quantile(values, q) {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
}

export function median(values) {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function formatNumber(value) {
  if (!Number.isFinite(value)) return "–";
  if (value >= 100) return Math.round(value).toLocaleString("en-US");
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** `median [min–max]`, or the one value there is. */
export function formatSpread(values) {
  if (values.length === 0) return "–";
  const text = formatNumber(median(values));
  if (values.length === 1) return text;
  return `${text} [${formatNumber(Math.min(...values))}–${formatNumber(Math.max(...values))}]`;
}
