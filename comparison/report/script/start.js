// What happens once, after everything above is there.
document.documentElement.classList.add('scripted');
restore();
for (const each of scenarios) whenNear(each.section, () => each.crowd());
