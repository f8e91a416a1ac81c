# What all plots of ckbench share: size, type, colours, points, grid. Loaded before the plot's own script, which the program
# does in harness/record/plot.c. `out` ends with .svg, .png or .pdf and picks the terminal;
# width and height, in pixels of the SVG, may be set before.
#
# The colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart; each comes with a point
# shape of its own, so that a plot reads in grey as well.

ending = out[strlen(out) - 3:]
if (!exists("width")) width = 960
if (!exists("height")) height = 600
if (ending eq ".svg") set terminal svg size width,height font "Helvetica,Arial,sans-serif,15" enhanced background "white" linewidth 1
if (ending eq ".png") set terminal pngcairo size 1.5 * width,1.5 * height font "Sans,15" enhanced background "white" fontscale 1.1 linewidth 1.5
if (ending eq ".pdf") set terminal pdfcairo size width / 100.0,height / 100.0 font "Sans,12" enhanced background "white"

ink = "#333333"

# One style per planner (harness/plan/registry.c), in its order: filled, hollow in style + 100, a faint line for the interval's
# bar in style + 200. Style 1 is plan none.
colours = "000000 0072b2 d55e00 009e73 cc79a7 e69f00 56b4e9 7f7f7f 7b3294 8c510a"
filled  = "3       7       9       5       13      11      15      7       9       5      "
hollow  = "3       6       8       4       12      10      14      6       8       4      "
do for [i = 1:words(colours)] {
	set style line i linecolor rgb "#" . word(colours, i) pointtype int(word(filled, i)) pointsize 1.25 linewidth 1.2
	set style line (100 + i) linecolor rgb "#" . word(colours, i) pointtype int(word(hollow, i)) pointsize 1.05 linewidth 1
	set style line (200 + i) linecolor rgb "#90" . word(colours, i) linewidth 1.6
}
set style line 1 pointsize 2 linewidth 2

set style line 301 linecolor rgb "#9a9a9a" linewidth 2.2                  # a front
set style line 302 linecolor rgb "#e4e4e4" linewidth 1                    # the grid
set style line 303 linecolor rgb "#9a9a9a" linewidth 1.2 dashtype (6, 6)  # a baseline

set border 3 linecolor rgb "#888888"
set tics nomirror scale 0.6 textcolor rgb ink
set grid xtics ytics back linestyle 302
set key outside right top vertical Left reverse samplen 1.5 spacing 1.3 textcolor rgb ink noautotitle
set xlabel textcolor rgb ink offset 0,-0.3
set ylabel textcolor rgb ink
set y2label textcolor rgb ink
set lmargin 10
set bmargin 4.2
set tmargin 4.4

# A heading at the left edge, and a smaller line below it.
set label 1001 "" at graph 0,1 left offset 0,2.5 textcolor rgb ink
set label 1002 "" at graph 0,1 left offset 0,1.1 textcolor rgb ink
