// Finding and making elements.
const SVG = 'http://www.w3.org/2000/svg';

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const made = (name, attributes = {}, text = '') => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
};
const nearing = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    nearing.unobserve(target);
    for (const then of target.whenNear.splice(0)) then();
  }
}, { rootMargin: '100% 0px' });
const whenNear = (element, then) => { // once it is no more than a screen away: a page of hundreds of runs opens at once
  (element.whenNear ??= []).push(then);
  nearing.observe(element);
};
const shape = (name, attributes, text = '') => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
};
