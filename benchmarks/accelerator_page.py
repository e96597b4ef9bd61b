"""The page of `accelerator.py`: its figures as text."""


def page(found):
    """The lines of `accelerator.txt`."""
    device = found["devices"][0]
    lines = [f"{key}: {value}" for key, value in device.items() if key != "versions"]
    lines += ["versions: " + ", ".join(f"{name} {version}" for name, version in device.get("versions", {}).items()), ""]
    lines += ["kernel checks: difference (allowed), and what was chosen on this device"]
    for name, row in found["checks"][0].items():
        if isinstance(row, dict):
            verdict = "right" if row["is_right"] else "WRONG"
            line = f"  {name:<20}{row['difference']:.2e} ({row['allowed']:g}) {verdict}  {row.get('chosen', '')}"
            lines.append(line.rstrip())
        elif name != "warnings":
            lines.append(f"  {row}")
    lines += ["", f"{'step':<8}{'rows x length':>15}{'dropout':>9}{'together':>10}{'ms':>9}{'tokens/s':>12}"
              f"{'of peak':>9}{'GiB':>7}{'first fit s':>13}"]  # fmt: skip
    for part in ("step", "peer"):
        lines += [line_of(part, row) for row in found.get(part, [])]
    lines += ["", "host: ms of a step with as many layers, but so narrow that nothing else counts"]
    for row in found["host"]:
        text = row.get("error") or f"{row['seconds_per_step'] * 1000:.2f}"
        lines.append(f"  {row.get('steps_per_execution', row.get('together'))} steps an execution: {text}")
    row = found["state"][0]
    lines += ["", row.get("error") or f"state of {row['gigabytes']:.2f} GB: saved in {row['seconds_to_save']:.2f} s, "
              f"restored in {row['seconds_to_restore']:.2f} s"]  # fmt: skip
    said = [
        text for part in found.values() if isinstance(part, list) for row in part for text in row.get("warnings", [])
    ]
    if said:
        lines += ["", "warnings", *(f"  {text}" for text in dict.fromkeys(said))]
    return lines


def line_of(part, row):
    """A line of the table of steps."""
    together = row.get("steps_per_execution", row.get("together", ""))
    name = f"{part:<8}{row.get('rows', '?'):>8} x {row['length']:<4}{row['dropout']:>9}{together:>10}"
    if "error" in row:
        return f"{name}  {row['error']}"
    share, memory, first = (row.get(key) for key in ("share_of_peak", "memory_gib", "seconds_of_first_fit"))
    columns = [f"{row['seconds_per_step'] * 1000:>9.1f}", f"{row['tokens_per_second']:>12,.0f}"]
    columns += ["" if value is None else form.format(value)
                for value, form in ((share, "{:>9.1%}"), (memory, "{:>7.1f}"), (first, "{:>13.1f}"))]  # fmt: skip
    return name + "".join(columns)
