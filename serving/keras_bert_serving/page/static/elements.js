// Small things that all files of the page use. Texts only ever become text nodes, never HTML.

export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function percent(share) {
  const rounded = Math.round(100 * share);
  if (rounded === 0 && share > 0) return "< 1 %";
  if (rounded === 100 && share < 1) return "> 99 %";
  return `${rounded} %`;
}

export function quoted(text) {
  return `“${text}”`;
}
