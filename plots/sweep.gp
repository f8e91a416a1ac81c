# Memory against time: one point per plan with its 95 % interval as a bar, and the front as a line. Filled points are on it.
#
# Takes, from harness/record/plot.c:
#     $points   one line per plan: its planner's style, memory, step time, low and high end of the interval, 1 if on the front
#     $front    the points on the front, by memory: memory, step time; the last one's time again at the right edge
#     heading, subheading; memory_unit, time_unit; xmin, xmax, ymin, ymax (in those units); out (a file, '' for the standard output)
#     base      step time of the baseline, 0 where it has none; baseline: its name
#     styles    words: the numbers of the styles in use; names: as many words
#     labels    are set already, where there is room for them

set label 1001 sprintf("{/:Bold*1.15 %s}", heading)
set label 1002 sprintf("{/*0.85 %s}", subheading)
set xlabel sprintf("peak of live memory (%s)", memory_unit)
set ylabel sprintf("time of one training step (%s)", time_unit)
set xrange [xmin:xmax]
set yrange [ymin:ymax]
if (base > 0) {
	set border 11
	set y2range [100 * (ymin / base - 1):100 * (ymax / base - 1)]
	set y2tics textcolor rgb ink format "%.0f %%"
	set y2label sprintf("overhead over plan %s", baseline) offset 0.8,0
	set arrow from graph 0, first base to graph 1, first base nohead back linestyle 303
}
set label 1003 "filled: on the front\nhollow: off it\nbar: 95 % interval" at graph 1.15,0.13 left textcolor rgb "#777777" font ",11"
if (out ne "") set output out

# Planner i's points on the front (1) or off it (0), and its bars.
memory(i, front) = ($1 == word(styles, i) + 0 && $6 == front) ? $2 : NaN
bar(i) = $1 == word(styles, i) + 0 ? $2 : NaN

plot $front using 1:2 with steps linestyle 301 title (has_front ? "front" : ""), \
     for [i = 1:words(styles)] $points using (bar(i)):4:(0):($5 - $4) with vectors nohead linestyle (200 + word(styles, i)), \
     for [i = 1:words(styles)] $points using (memory(i, 0)):3 with points linestyle (100 + word(styles, i)), \
     for [i = 1:words(styles)] $points using (memory(i, 1)):3 with points linestyle (word(styles, i) + 0), \
     for [i = 1:words(styles)] NaN with points linestyle (word(styles, i) + 0) title word(names, i)
