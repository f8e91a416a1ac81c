# Loss over training steps: one curve per plan. Equal plans give equal curves, so the first is drawn broad and the others as marks on it.
#
# Takes, from harness/record/plot_train.c:
#     $curve_1 …  of each plan: step, loss; name_1, style_1 …: its name, its planner's style
#     curves      how many; steps: the most that one has
#     heading, subheading; optimizer; out (a file, '' for the standard output)

set label 1001 sprintf("{/:Bold*1.15 %s}", heading)
set label 1002 sprintf("{/*0.85 %s}", subheading)
set xlabel sprintf("training step (%s)", optimizer)
set ylabel "loss of the step's batch"
set xrange [1:steps]
set yrange [0:*]
if (curves > 1) set label 1003 "equal curves\nlie on\neach other" at graph 1.03,0.11 left textcolor rgb "#777777" font ",11"
if (out ne "") set output out

# The marks of curve i, a dozen along it, each curve's at other steps.
marked(i) = int(column(1) * 12 * curves / steps) % curves == i - 1 && \
	int(column(1) * 12 * curves / steps) != int((column(1) - 1) * 12 * curves / steps)

plot $curve_1 using 1:2 with lines linestyle 301 notitle, \
     for [i = 1:curves] sprintf("$curve_%d", i) using 1:2 with lines linestyle value(sprintf("style_%d", i)) linewidth 1 notitle, \
     for [i = 1:curves] sprintf("$curve_%d", i) using 1:(marked(i) ? $2 : NaN) with points \
         linestyle value(sprintf("style_%d", i)) notitle, \
     for [i = 1:curves] NaN with linespoints linestyle value(sprintf("style_%d", i)) title value(sprintf("name_%d", i))
