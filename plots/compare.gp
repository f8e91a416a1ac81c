# Several machines or builds in one picture: for each case a row of two panels, what each side measured, and the same over its own plan
# none. Colour and shape tell the sides apart, filled points are on a side's front, the line is that front.
#
# Takes, from harness/record/plot_compare.c:
#     rows, sides           how many; at most 9 sides
#     name_1 …              of each side
#     heading_1 …           of each row; memory_unit_1 …, time_unit_1 …: its units
#     xmin_1, xmax_1, ymin_1, ymax_1 …      of each row's left panel; smin_1, smax_1, omin_1, omax_1 …: of its right one
#     $points_ROW_SIDE      a line per plan: memory, step time, low and high end of its interval, saving (%), overhead (%), 1 if on the front
#     $front_ROW_SIDE       of the left panel, by memory: memory, step time; the last one's time again at the right edge
#     $saved_ROW_SIDE       of the right panel, by saving: the first one's overhead at the left edge; saving, overhead
#     $labels_ROW           names of points in the left panel: memory and time of the text's end (l, r) or middle (c), text, which of them
#     width, height, head   in the theme's pixels: the picture, and what of it the names take; out (a file, '' for the standard output)

of(name, row) = value(sprintf("%s_%d", name, row))
block(name, row, side) = sprintf("$%s_%d_%d", name, row, side)
style(side) = side + 1  # the theme's first is plan none's
row_height = (height - head) / real(rows)
down(row, pixels) = 1 - (head + (row - 1) * row_height + pixels) / real(height)

unset label 1001
unset label 1002
set border 3
if (out ne "") set output out
set multiplot
set label 1003 "filled: on the side's own front; names: plans on A's\nbar: 95 % interval" at screen 0.985,down(1, 24 - head) right textcolor rgb "#777777" font ",11"
do for [row = 1:rows] {
	set tmargin at screen down(row, 34)
	set bmargin at screen down(row, row_height - 76)
	set label 1001 sprintf("{/:Bold*0.9 %s}", of("heading", row)) at graph 0,1 left offset 0,1 textcolor rgb ink
	set lmargin at screen 0.075
	set rmargin at screen 0.5
	set xlabel sprintf("peak of live memory (%s)", of("memory_unit", row))
	set ylabel sprintf("time of one training step (%s)", of("time_unit", row))
	set xrange [of("xmin", row):of("xmax", row)]
	set yrange [of("ymin", row):of("ymax", row)]
	if (row == 1) {
		set key at screen 0.075,down(1, 24 - head) left top vertical maxrows sides Left reverse samplen 1.5 spacing 1.2
	} else {
		unset key
	}
	plot for [i = 1:sides] block("front", row, i) using 1:2 with steps linestyle (200 + style(i)) linewidth 2 notitle, \
	     for [i = 1:sides] block("points", row, i) using 1:3:(0):($4 - $3) with vectors nohead linestyle (200 + style(i)) notitle, \
	     for [i = 1:sides] block("points", row, i) using 1:($7 == 0 ? $2 : NaN) with points linestyle (100 + style(i)) notitle, \
	     for [i = 1:sides] block("points", row, i) using 1:($7 == 1 ? $2 : NaN) with points linestyle style(i) notitle, \
	     sprintf("$labels_%d", row) using 1:(strcol(4) eq "l" ? $2 : NaN):3 with labels left font ",11" textcolor rgb ink noenhanced notitle, \
	     sprintf("$labels_%d", row) using 1:(strcol(4) eq "r" ? $2 : NaN):3 with labels right font ",11" textcolor rgb ink noenhanced notitle, \
	     sprintf("$labels_%d", row) using 1:(strcol(4) eq "c" ? $2 : NaN):3 with labels center font ",11" textcolor rgb ink noenhanced notitle, \
	     for [i = 1:sides] NaN with points linestyle style(i) title value(sprintf("name_%d", i))
	unset key
	unset label 1001
	unset label 1003
	set lmargin at screen 0.57
	set rmargin at screen 0.985
	set xlabel "memory saved over the side's own plan none (%)"
	set ylabel "overhead in time (%)"
	set xrange [of("smin", row):of("smax", row)]
	set yrange [of("omin", row):of("omax", row)]
	plot for [i = 1:sides] block("saved", row, i) using 1:2 with fsteps linestyle (200 + style(i)) linewidth 2 notitle, \
	     for [i = 1:sides] block("points", row, i) using 5:($7 == 0 ? $6 : NaN) with points linestyle (100 + style(i)) notitle, \
	     for [i = 1:sides] block("points", row, i) using 5:($7 == 1 ? $6 : NaN) with points linestyle style(i) notitle
}
unset multiplot
