// Finding and making elements.
const SVG = 'http://www.w3.org/2000/svg';

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const made = (name, attributes = {}, text = '') => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
};
const shape = (name, attributes, text = '') => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
};
