// What happens once, after everything above is there.
document.documentElement.classList.add('scripted');
restore();
scenarios.forEach((each) => each.crowd());
