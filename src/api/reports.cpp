#include "api/reports.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/report.h"
#include "api/failure.h"
#include "base/text.h"
#include "driver/dims.h"
#include "driver/memory_report.h"
#include "driver/report.h"

namespace selkie::api {
namespace {

template <class Body>
auto of_model(const Source& source, Body body) {
  return in_phase(Phase::model, [&] {
    if (source.path.empty() && source.bytes.data() == nullptr)
      fail("the model's bytes were not kept: reports need the option keep_source");
    return body(import_model(source));
  });
}

// What the model compiles to. A model that cannot be compiled still has its shapes explained.
Explanation cpu_section(ir::Module& module, const driver::Options& options, const driver::Sizes& sizes) {
  try {
    driver::CpuReport report = driver::explain(module, options, sizes);
    return {driver::summary_text(report) + driver::machine_text(report), driver::json(report)};
  } catch (const Error& error) {
    return {fmt::format("target cpu: it does not compile: {}\n", error.what()),
            fmt::format("{{\"error\": {}}}", json_quote(error.what()))};
  }
}

void check_sizes(const ir::Module& module, const driver::Sizes& sizes) {
  std::vector<std::string> known = driver::names_of_sizes(module.main());
  for (const auto& [name, size] : sizes) {
    if (std::ranges::find(known, name) == known.end())
      fail("no input has a size '{}'; there are: {}", name,
           known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
    if (size < 0) fail("size '{}' is {}, but must not be negative", name, size);
  }
}

}  // namespace

Explanation explain(const Source& source, const driver::Sizes& sizes) {
  return of_model(source, [&](const std::shared_ptr<ir::Module>& module) {
    check_sizes(*module, sizes);
    analysis::Rdp rdp(*module);
    analysis::Report report = analysis::report(rdp);
    Explanation cpu = cpu_section(*import_model(source), source.options, sizes);
    return Explanation{.text = analysis::summary_text(report, rdp) + cpu.text + analysis::table_text(report),
                       .json = analysis::json(report, rdp, fmt::format("\"cpu\": {}", cpu.json))};
  });
}

std::string explain_node(const Source& source, const std::string& node) {
  return of_model(source, [&](const std::shared_ptr<ir::Module>& module) {
    analysis::Rdp rdp(*module);
    analysis::Report report = analysis::report(rdp);
    std::string text = analysis::node_text(report, rdp, node);
    if (text.empty()) fail("the model has no node or value '{}'", node);
    return text;
  });
}

std::string explain_page(const Source& source, const std::string& title) {
  return of_model(source, [&](const std::shared_ptr<ir::Module>& module) {
    analysis::Rdp rdp(*module);
    return analysis::html(analysis::report(rdp), rdp, title);
  });
}

Plan plan(const Source& source, const driver::Sizes& sizes, const std::string& title) {
  return of_model(source, [&](const std::shared_ptr<ir::Module>& module) {
    check_sizes(*module, sizes);
    size_t inputs = module->main().body.parameters.size();
    driver::MemoryReport report =
        driver::memory_report(*module, source.options.compiler, sizes, std::vector<HostValue>(inputs));
    return Plan{.text = driver::text(report, true), .json = driver::json(report), .svg = driver::svg(report, title)};
  });
}

}  // namespace selkie::api
