// The arena over time as an SVG: a box per tensor, as wide as it lives and as high as it is large.
#include <algorithm>

#include "driver/memory_report.h"

namespace selkie::driver {
namespace {

constexpr double width = 1200, height = 560, left = 90, top = 46, right = 20, bottom = 40;

std::string escaped_xml(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string size_text(double bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit < 3; ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

class Picture {
 public:
  explicit Picture(const MemoryReport& report)
      : r_(report),
        instructions_(static_cast<double>(std::max<size_t>(report.instructions.size(), 1))),
        bytes_(static_cast<double>(std::max<int64_t>(report.arena, 1))) {}

  std::string draw(const std::string& title) const {
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n"
        "<style>\n"
        "svg {{ background: #fff; color: #222 }}\n"
        "text {{ fill: currentColor }}\n"
        "line, path {{ stroke: currentColor; fill: none }}\n"
        ".region {{ fill: currentColor; fill-opacity: .05 }}\n"
        ".tensor {{ stroke: #fff; stroke-width: .5; fill-opacity: .85 }}\n"
        ".tensor:hover {{ fill-opacity: 1; stroke: currentColor; stroke-width: 2 }}\n"
        "@media (prefers-color-scheme: dark) {{ svg {{ background: #16181c; color: #ddd }} .tensor {{ stroke: #16181c "
        "}} }}\n</style>\n",
        width, height);
    out += fmt::format("<text x=\"{}\" y=\"18\" font-size=\"15\">{}</text>\n", left, escaped_xml(title));
    out += fmt::format("<text x=\"{}\" y=\"36\">arena {}, lower bound {}{}</text>\n", left, size_text(bytes_),
                       size_text(static_cast<double>(r_.bound.bytes)), escaped_xml(sizes_text()));
    return out + regions() + tensors() + in_use() + axes() + "</svg>\n";
  }

 private:
  double x(double instruction) const { return left + instruction / instructions_ * (width - left - right); }
  double y(double bytes) const { return height - bottom - bytes / bytes_ * (height - top - bottom); }

  std::string sizes_text() const {
    std::string out;
    for (const auto& [name, size] : r_.sizes) out += fmt::format("{}{} = {}", out.empty() ? "; " : ", ", name, size);
    return out;
  }

  std::string regions() const {
    std::string out;
    for (size_t i = 1; i < r_.regions.size(); ++i) {
      const MemoryRegion& region = r_.regions[i];
      out += fmt::format(
          "<rect class=\"region\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"><title>{} "
          "{}–{}</title></rect>\n",
          x(region.begin), top, x(region.end) - x(region.begin), height - top - bottom, region.kind, region.begin,
          region.end);
    }
    return out;
  }

  std::string tensors() const {
    std::string out;
    for (size_t i = 0; i < r_.rows.size(); ++i) {
      const MemoryRow& row = r_.rows[i];
      if (row.bytes == 0) continue;
      // Neighbours get colours that are far apart.
      auto hue = static_cast<int>(i * 137 % 360);
      auto begin = static_cast<double>(row.offset);
      auto size = static_cast<double>(row.bytes);
      out += fmt::format(
          "<rect class=\"tensor\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"hsl({}, 55%, "
          "55%)\"><title>{}\n{}\n{} bytes at {}, instructions {}–{}</title></rect>\n",
          x(row.life.first), y(begin + size), x(row.life.last + 1.0) - x(row.life.first), y(begin) - y(begin + size),
          hue, escaped_xml(row.name),
          escaped_xml(row.shape == row.numbers ? row.shape : row.shape + " = " + row.numbers), row.bytes, row.offset,
          row.life.first, row.life.last);
    }
    return out;
  }

  // How many bytes are in use at each instruction.
  std::string in_use() const {
    std::vector<int64_t> sum(r_.instructions.size() + 2, 0);
    for (const MemoryRow& row : r_.rows) {
      sum[std::min<size_t>(row.life.first, sum.size() - 1)] += row.bytes;
      sum[std::min<size_t>(row.life.last + size_t{1}, sum.size() - 1)] -= row.bytes;
    }
    std::string path;
    int64_t now = 0;
    for (size_t i = 0; i < r_.instructions.size(); ++i) {
      now += sum[i];
      path += fmt::format("{}{:.2f},{:.2f} H{:.2f} ", path.empty() ? "M" : "L", x(static_cast<double>(i)),
                          y(static_cast<double>(now)), x(static_cast<double>(i) + 1));
    }
    return fmt::format("<path d=\"{}\" stroke-width=\"1.2\"><title>bytes in use</title></path>\n", path);
  }

  std::string axes() const {
    std::string out;
    constexpr int marks = 4;
    for (int i = 0; i <= marks; ++i) {
      double bytes = bytes_ * i / marks;
      out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 6, y(bytes) + 4,
                         size_text(bytes));
      auto instruction = static_cast<int64_t>(instructions_ * i / marks);
      out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                         x(static_cast<double>(instruction)), height - bottom + 16, instruction);
    }
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">instruction</text>\n", (left + width) / 2,
                       height - 8);
    out += fmt::format("<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\"/>\n", left, height - bottom, width - right);
    double bound = y(static_cast<double>(r_.bound.bytes));
    return out + fmt::format(
                     "<line x1=\"{0}\" y1=\"{1:.2f}\" x2=\"{2}\" y2=\"{1:.2f}\" stroke-dasharray=\"6 4\"><title>lower "
                     "bound</title></line>\n",
                     left, bound, width - right);
  }

  const MemoryReport& r_;
  double instructions_;
  double bytes_;
};

}  // namespace

std::string svg(const MemoryReport& report, const std::string& title) { return Picture(report).draw(title); }

}  // namespace selkie::driver
