<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>
<qgis version="3.22" styleCategories="Symbology">
{# A graduated style hides features without a number; -1 keeps skipped buildings visible. #}
  <renderer-v2 type="graduatedSymbol" attr="coalesce(&quot;score&quot;, -1)" graduatedMethod="GraduatedColor" symbollevels="0" forceraster="0" enableorderby="0">
    <ranges>
{% for low, high, label, _ in classes %}
      <range lower="{{ '%.6f' | format(low) }}" upper="{{ '%.6f' | format(high) }}" symbol="{{ loop.index0 }}" label="{{ label }}" render="true"/>
{% endfor %}
    </ranges>
    <symbols>
{% for _, _, _, colour in classes %}
      <symbol name="{{ loop.index0 }}" type="{{ 'marker' if is_point else 'fill' }}" alpha="0.8" clip_to_extent="1">
        <layer class="{{ 'SimpleMarker' if is_point else 'SimpleFill' }}" enabled="1" locked="0" pass="0"><Option type="Map"><Option name="color" type="QString" value="{{ colour }},255"/><Option name="outline_color" type="QString" value="60,60,60,255"/><Option name="outline_width" type="QString" value="0.1"/>{% if is_point %}<Option name="size" type="QString" value="2"/>{% endif %}</Option></layer>
      </symbol>
{% endfor %}
    </symbols>
  </renderer-v2>
  <layerGeometryType>{{ 0 if is_point else 2 }}</layerGeometryType>
</qgis>
