"""The playground: groups of several designs side by side, played against by hand and watched as they run."""
