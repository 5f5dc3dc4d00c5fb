// The graph as a picture: Graphviz text, and a page with an SVG that needs nothing else.
#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/report.h"

namespace selkie::analysis {
namespace {

constexpr std::array<std::string_view, 4> colours{"#cfe8cf", "#d6e4f5", "#fbe3b6", "#f4c7c3"};
constexpr size_t most_nodes = 20'000;

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string details(const NodeReport& n) {
  std::string out = fmt::format("{} ({}), {}", n.name, n.node->op->name, ir::name(n.cls));
  for (std::string_view cause : n.causes) out += fmt::format("\ndepends on the values of {}", cause);
  for (const ValueReport& v : n.results) {
    out += fmt::format("\n{}: {}", v.value->name, v.type);
    if (!v.contents.empty()) out += " = " + v.contents;
    for (size_t i = 0; i < v.dims.size(); ++i)
      if (v.dims[i].kind >= DimKind::bounded) out += fmt::format("\n  dim {} is {}", i, name(v.dims[i].kind));
  }
  return out;
}

// Places nodes in layers by their distance from the inputs; a node with regions is a box around them.
class Layout {
 public:
  struct Box {
    double x = 0, y = 0, width = 0, height = 0;
  };

  explicit Layout(const ir::Region& region) { size_ = place(region); }

  Box size() const { return size_; }
  const Box* box(const ir::Node& node) const {
    auto at = boxes_.find(&node);
    return at == boxes_.end() ? nullptr : &at->second;
  }

 private:
  static constexpr double gap = 24, row_gap = 36, node_height = 34, header = 22, letter = 7;

  // Size of a region whose boxes are at places relative to it.
  Box place(const ir::Region& region) {
    std::unordered_map<const ir::Node*, size_t> layer;
    std::vector<std::vector<const ir::Node*>> rows;
    for (const auto& node : region.nodes) {
      size_t at = 0;
      note_uses(*node, layer, at);
      layer[node.get()] = at;
      if (rows.size() <= at) rows.resize(at + 1);
      rows[at].push_back(node.get());
      boxes_[node.get()] = measure(*node);
    }
    Box all;
    std::vector<double> widths;
    for (const auto& row : rows) {
      double width = -gap;
      for (const ir::Node* node : row) width += boxes_[node].width + gap;
      widths.push_back(width);
      all.width = std::max(all.width, width);
    }
    double y = gap / 2;
    for (size_t i = 0; i < rows.size(); ++i) {
      double x = (all.width - widths[i]) / 2 + gap / 2;
      double height = 0;
      for (const ir::Node* node : rows[i]) {
        move(*node, x, y);
        x += boxes_[node].width + gap;
        height = std::max(height, boxes_[node].height);
      }
      y += height + row_gap;
    }
    all.width += gap;
    all.height = std::max(y - row_gap + gap / 2, gap);
    return all;
  }

  static void note_uses(const ir::Node& node, const std::unordered_map<const ir::Node*, size_t>& layer, size_t& at) {
    auto use = [&](const ir::Value* v) {
      if (v == nullptr || v->node == nullptr) return;
      if (auto found = layer.find(v->node); found != layer.end()) at = std::max(at, found->second + 1);
    };
    for (const ir::Value* v : node.operands) use(v);
    for (const auto& region : node.regions) {
      for (const auto& inner : region->nodes) note_uses(*inner, layer, at);
      for (const ir::Value* v : region->yields) use(v);
    }
  }

  Box measure(const ir::Node& node) {
    Box box{.width = std::max(60.0, letter * static_cast<double>(node.op->name.size()) + 20), .height = node_height};
    if (node.regions.empty()) return box;
    double x = gap / 2;
    double height = 0;
    for (const auto& region : node.regions) {
      Box inner = place(*region);
      for (const auto& child : region->nodes) move(*child, x, header + gap / 2);
      x += inner.width + gap / 2;
      height = std::max(height, inner.height);
    }
    return {.width = std::max(box.width, x), .height = height + header + gap};
  }

  void move(const ir::Node& node, double x, double y) {
    boxes_[&node].x += x;
    boxes_[&node].y += y;
    for (const auto& region : node.regions)
      for (const auto& child : region->nodes) move(*child, x, y);
  }

  std::unordered_map<const ir::Node*, Box> boxes_;
  Box size_;
};

class Svg {
 public:
  Svg(const Report& report, const Layout& layout) : layout_(layout) {
    for (const NodeReport& n : report.nodes) reports_[n.node] = &n;
  }

  std::string draw(const ir::Region& region) {
    nodes(region);
    edges(region);
    Layout::Box size = layout_.size();
    return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\">{}{}</svg>",
                       size.width, size.height, boxes_, lines_);
  }

 private:
  void nodes(const ir::Region& region) {
    for (const auto& node : region.nodes) {
      const Layout::Box& b = *layout_.box(*node);
      const NodeReport& n = *reports_.at(node.get());
      bool dead = n.entry != Entry::possible;
      boxes_ += fmt::format(
          "<g class=\"n{}\" data-d=\"{}\"><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"6\" "
          "fill=\"{}\"/><text x=\"{:.0f}\" y=\"{:.0f}\">{}</text></g>",
          dead ? " dead" : "", escape(details(n)), b.x, b.y, b.width, b.height, colours[static_cast<size_t>(n.cls)],
          b.x + b.width / 2, b.y + 20, escape(node->op->name));
      for (const auto& inner : node->regions) nodes(*inner);
    }
  }

  void edges(const ir::Region& region) {
    for (const auto& node : region.nodes) {
      const Layout::Box& to = *layout_.box(*node);
      for (const ir::Value* v : node->operands) {
        const Layout::Box* from = v != nullptr && v->node != nullptr ? layout_.box(*v->node) : nullptr;
        if (from == nullptr) continue;
        double x0 = from->x + from->width / 2, y0 = from->y + from->height, x1 = to.x + to.width / 2, y1 = to.y;
        double bend = std::max(12.0, std::fabs(y1 - y0) / 3);
        lines_ += fmt::format("<path d=\"M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}\"/>", x0, y0, x0,
                              y0 + bend, x1, y1 - bend, x1, y1);
      }
      for (const auto& inner : node->regions) edges(*inner);
    }
  }

  const Layout& layout_;
  std::unordered_map<const ir::Node*, const NodeReport*> reports_;
  std::string boxes_;
  std::string lines_;
};

void dot_region(const ir::Region& region, const std::unordered_map<const ir::Node*, const NodeReport*>& reports,
                std::unordered_map<const ir::Node*, size_t>& ids, std::string& nodes, std::string& edges) {
  for (const auto& node : region.nodes) {
    size_t id = ids.emplace(node.get(), ids.size()).first->second;
    const NodeReport& n = *reports.at(node.get());
    std::string label = std::string(node->op->name);
    for (const ValueReport& v : n.results) label += "\\n" + v.type;
    std::string quoted;
    for (char c : label) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
    nodes += fmt::format("n{} [label=\"{}\", fillcolor=\"{}\"];\n", id, quoted, colours[static_cast<size_t>(n.cls)]);
    for (const ir::Value* v : node->operands)
      if (v != nullptr && v->node != nullptr && ids.contains(v->node))
        edges += fmt::format("n{} -> n{};\n", ids.at(v->node), id);
    for (size_t i = 0; i < node->regions.size(); ++i) {
      nodes += fmt::format("subgraph cluster_{}_{} {{ label=\"{} {}\";\n", id, i, node->op->name, i);
      dot_region(*node->regions[i], reports, ids, nodes, edges);
      nodes += "}\n";
    }
  }
}

constexpr std::string_view page_head = R"(<!doctype html><html><head><meta charset="utf-8"><title>{}</title><style>
:root{{color-scheme:light dark}}body{{font:14px system-ui,sans-serif;margin:0;display:flex;height:100vh}}
#g{{flex:1;overflow:auto;padding:12px}}#p{{width:30em;overflow:auto;padding:12px;border-left:1px solid #8888;
white-space:pre-wrap;font-family:ui-monospace,monospace;font-size:12px}}svg text{{text-anchor:middle;
font:12px system-ui,sans-serif;fill:#222;pointer-events:none}}svg rect{{stroke:#667}}svg path{{fill:none;stroke:#889a;
stroke-width:1.2}}.n:hover rect{{stroke:#06c;stroke-width:2.5}}.dead{{opacity:.35}}b i{{display:inline-block;
width:1em;height:1em;border-radius:3px;margin:0 .3em 0 .8em;vertical-align:-2px}}</style></head><body><div id="g"><b>)";
constexpr std::string_view page_script = R"(<script>const p=document.getElementById('p'),all=p.textContent;
for(const n of document.querySelectorAll('.n')){n.onmouseenter=()=>{p.textContent=n.dataset.d};
n.onmouseleave=()=>{if(!n.classList.contains('kept'))p.textContent=all};
n.onclick=()=>{n.classList.toggle('kept')}}</script></body></html>
)";

}  // namespace

std::string dot(const Report& r, const Rdp& rdp) {
  std::unordered_map<const ir::Node*, const NodeReport*> reports;
  for (const NodeReport& n : r.nodes) reports[n.node] = &n;
  std::string nodes = "digraph model {\nnode [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n";
  std::string edges;
  std::unordered_map<const ir::Node*, size_t> ids;
  dot_region(rdp.module().main().body, reports, ids, nodes, edges);
  return nodes + edges + "}\n";
}

std::string html(const Report& r, const Rdp& rdp, const std::string& title) {
  if (r.nodes.size() > most_nodes)
    fail("a picture of {} nodes would be too large; --json has them all", r.nodes.size());
  const ir::Region& body = rdp.module().main().body;
  Layout layout(body);
  std::string out = fmt::format(fmt::runtime(page_head), escape(title));
  out += escape(title);
  for (size_t i = 0; i < 4; ++i)
    out += fmt::format("<i style=\"background:{}\"></i>{}", colours[i], ir::name(static_cast<ir::DynamismClass>(i)));
  out += "</b><br><br>" + Svg(r, layout).draw(body) + "</div><div id=\"p\">" + escape(summary_text(r, rdp)) + "</div>";
  return out + std::string(page_script);
}

}  // namespace selkie::analysis
